"""Which services open a transaction: found in their source, whatever anybody remembered."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("interrupts/services", "approvals/services", "delegation/services")
# What opens a transaction, or is a statement that is its own.
OPENS = {
    "interrupts.work.working",
    "django.db.transaction.atomic",
    "interrupts.hot.advance",
    "approvals.hot.approve",
    "approvals.hot.approve_under_key",
}


def openers() -> set[str]:
    """The public functions of the services that come to open a transaction, by their own calls."""
    calls: dict[str, set[str]] = {}
    doors: set[str] = set()
    again: dict[str, str] = {}  # by what other name a module offers what it imported
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            tree = ast.parse(path.read_text())
            again.update({f"{name}.{known}": full for known, full in _imported(tree)})
            for function, called, is_door in _functions(name, tree):
                calls[function] = called
                doors |= {function} if is_door else set()
    calls = {name: {again.get(one, one) for one in called} for name, called in calls.items()}
    opening = set(OPENS)
    while more := {f for f, called in calls.items() if called & opening} - opening:
        opening |= more
    return {
        name
        for name in opening & calls.keys() - doors
        if not name.rpartition(".")[2].startswith("_")
    }


def _functions(module: str, tree: ast.Module) -> Iterator[tuple[str, set[str], bool]]:
    """Each function of a module, what it calls by full name, and whether it is a block of others."""
    known = dict(_imported(tree))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    known |= {node.name: f"{module}.{node.name}" for node in functions}
    for node in functions:
        called = {
            name
            for part in ast.walk(node)
            if isinstance(part, ast.Name | ast.Attribute) and (name := _full_name(part, known))
        }
        blocks = {ast.unparse(one) for one in node.decorator_list} & {"contextmanager"}
        yield f"{module}.{node.name}", called, bool(blocks)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for one in node.names:
                yield one.asname or one.name, f"{node.module}.{one.name}"


def _full_name(node: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := _full_name(node.value, known)):
        return f"{owner}.{node.attr}"
    return None
