"""What a run tells of itself without asking the service, for both kinds of client."""

from __future__ import annotations

from abeyance.driving import Driven
from abeyance.values import Document, Guidance, Question


class Handle:
    """A run as this process last saw it."""

    def __init__(self, driven: Driven) -> None:
        self._driven = driven

    @property
    def id(self) -> str:
        run_id: str = self._driven.document["id"]
        return run_id

    @property
    def session(self) -> int | None:
        """The session of this process; None where the run had ended already."""
        return self._driven.session

    @property
    def status(self) -> str:
        """As it was last seen; `refresh` looks again."""
        status: str = self._driven.document["status"]
        return status

    @property
    def document(self) -> Document:
        """The whole run as it was last seen, as the API shows it."""
        return self._driven.document

    @property
    def guidance(self) -> list[Guidance]:
        """What people told the agent to do differently, until it is acknowledged."""
        return self._driven.guidance

    @property
    def questions(self) -> list[Question]:
        """What people ask about steps that wait, as it was last seen; `refresh` looks again."""
        return list(map(Question.of, self._driven.document["questions"]))
