"""Who may import whom: the table of layers in pyproject.toml, which import-linter reads too.

import-linter follows what is imported indirectly; this sees imports inside functions and under
TYPE_CHECKING as well, and what no contract of its says.
"""

import ast
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
APPS = ("tenants", "interrupts", "approvals", "delegation")
CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
}
# What every app names alike, from the top (docs/architecture.md); a row is one layer.
SHARED_NAMES = (
    {"urls", "templatetags", "management", "admin", "views", "api", "tasks"},
    {"services"},
    {"transitions"},
    {"selectors", "locks", "queue", "hot"},
    {"models"},
    {"errors"},
)
# These live in the API's package and say only what a document may look like: apps check the
# tenant's file with them as well.
VOCABULARY = {"tenants.api.body", "tenants.api.checks"}
# What the apps may take of config; the rest of it is the project around them.
SHARED = {"errors", "jsontext", "globs", "keeping", "keys", "memo", "stopping", "visible"}


def rows(contract: str) -> list[set[str]]:
    """The layers of a contract, the lowest first."""
    return [
        {name.strip().strip("()") for name in row.split(" : ")}
        for row in reversed(CONTRACTS[contract]["layers"])
    ]


LAYERS = {app: rows(f"Inside {app}") for app in APPS}


def place(app: str, module: str) -> int:
    """How high a module stands in its app; -1 where it has no place."""
    return next((at for at, names in enumerate(LAYERS[app]) if module in names), -1)


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT)


def imports(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def faults(path: Path, source: str) -> Iterator[str]:
    """What a module of an app imports that it may not."""
    app, module, *_ = path.with_suffix("").parts
    for name in sorted(imports(source)):
        to, *rest = name.split(".")
        if to == app and rest:
            if place(app, module) < place(app, rest[0]):
                yield f"{path}: {name} stands higher in the app"
        elif to in APPS and rest:
            yield from _other_app(path, name)
        elif to == "config" and rest and rest[0] not in SHARED:
            yield f"{path}: {name} is the project's, not the apps'"


def _other_app(path: Path, name: str) -> Iterator[str]:
    (app, module, *_), (to, layer, *_) = path.with_suffix("").parts, name.split(".")
    if APPS.index(to) > APPS.index(app):
        yield f"{path}: {name} is of an app that stands higher"
    elif any(f"{name}.".startswith(f"{known}.") for known in VOCABULARY):
        return
    elif layer == "services" and place(app, module) < place(app, "services"):
        yield f"{path}: {name} opens transactions of its own"
    elif layer in SHARED_NAMES[0] and module not in SHARED_NAMES[0]:
        yield f"{path}: {name} is an interface"


def test_imports_point_down():
    found = [fault for path in modules(*APPS) for fault in faults(path, (ROOT / path).read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("interrupts/locks.py", "from interrupts.services import runs"),
        ("interrupts/models/runs.py", "def f():\n    from interrupts import errors, queue"),
        ("interrupts/work.py", "from approvals.models import Gate"),
        ("tenants/scope.py", "import interrupts.models"),
        ("approvals/transitions.py", "from interrupts.services.steps import propose"),
        ("approvals/services/gates.py", "from interrupts.api.rendering import run_as_json"),
        ("interrupts/worker.py", "from config.celery import app"),
    ],
)
def test_an_import_that_points_up_is_found(path, source):
    assert len(list(faults(Path(path), source))) == 1


def test_every_module_of_an_app_has_its_place():
    placeless = [
        str(path)
        for path in modules(*APPS)
        if len(path.parts) > 1
        and (name := path.with_suffix("").parts[1]) != "__init__"
        and place(path.parts[0], name) < 0
    ]
    assert placeless == []


@pytest.mark.parametrize("app", APPS)
def test_the_layers_that_apps_share_keep_their_order_in_every_app(app):
    # The lowest of a row stands above the highest of the row below it.
    places = [sorted(place(app, name) for name in row) for row in SHARED_NAMES]
    known = [[at for at in row if at >= 0] for row in places]
    assert all(upper[0] > lower[-1] for upper, lower in pairwise(known))


def test_apps_stand_in_one_order():
    order = [name for row in rows("Apps point one way") for name in row]
    assert [name for name in order if name in APPS] == list(APPS)


def test_config_knows_no_app_but_in_its_urls():
    found = [
        f"{path}: {name}"
        for path in modules("config")
        for name in sorted(imports((ROOT / path).read_text()))
        if name.split(".")[0] in APPS and path.name != "urls.py"
    ]
    assert found == []
