"""All tables of an app, as one operation for its first migration."""

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class Tables(Operation):
    """Make a table for each of ``models``, which may refer to one another in any order.

    This is what each of them would do by itself, but the models are rendered once for all. Django
    renders whatever is related to a new model anew, which here is nearly everything: of the time
    of a first start that was more than half.
    """

    def __init__(self, models: Sequence[CreateModel]) -> None:
        self.models = models

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Add the models to ``state``, which renders them when it is next asked for one."""
        vars(state).pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Create the tables; references among them are added when the migration ends."""
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Drop the tables, the last one first."""
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        """Return what ``migrate`` prints of it."""
        return f"Create the tables of {', '.join(model.name for model in self.models)}"

    def deconstruct(self) -> tuple[str, Sequence[Any], dict[str, Any]]:
        """Return how it is written in a migration."""
        return type(self).__name__, [], {"models": self.models}
