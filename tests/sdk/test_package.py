"""What the distribution is: httpx and itself, typed, with two clients that can do the same."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from pathlib import Path

import abeyance
import pytest
from abeyance import Abeyance, AsyncAbeyance, AsyncRun, Run, errors
from abeyance.testing import AsyncFakeAbeyance, FakeAbeyance

SDK = Path(abeyance.__file__).parent
PAIRS = [(Abeyance, AsyncAbeyance), (Run, AsyncRun), (FakeAbeyance, AsyncFakeAbeyance)]


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.module
            assert node.level == 0
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.partition(".")[0] for name in found}


def test_it_imports_httpx_and_nothing_of_the_server() -> None:
    modules = sorted(SDK.rglob("*.py"))
    assert len(modules) > 10
    for path in modules:
        assert imported(path) <= sys.stdlib_module_names | {"httpx", "abeyance"}, path
    declared = tomllib.loads((SDK.parent / "pyproject.toml").read_text())["project"]
    assert [re.split(r"[<>=]", one)[0] for one in declared["dependencies"]] == ["httpx"]


def test_it_is_typed() -> None:
    assert (SDK / "py.typed").exists()


@pytest.mark.parametrize(("plain", "on_asyncio"), PAIRS)
def test_both_clients_have_the_same_calls(plain: type, on_asyncio: type) -> None:
    assert public(plain) == public(on_asyncio)


def public(client: type) -> dict[str, list[tuple[str, str, str]]]:
    """What can be called, by name: the parameters with their kinds and types, and what it says."""
    found = {}
    for name, member in inspect.getmembers(client):
        if not name.startswith("_") and callable(member) and inspect.isroutine(member):
            signature = inspect.signature(member)
            found[name] = [
                (one.name, str(one.kind), re.sub(r"Awaitable\[(\w+)\]", r"\1", str(one.annotation)))
                for one in signature.parameters.values()
            ] + [("", "", inspect.getdoc(member) or "")]
    return found


def test_every_error_is_exported_and_tells_a_model_one_sentence() -> None:
    for name, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, errors.AbeyanceError):
            assert getattr(abeyance, name) is error
            assert name in abeyance.__all__


@pytest.mark.parametrize("code", sorted(errors.CLASSES))
def test_what_a_refusal_tells_a_model_is_a_sentence(code: str) -> None:
    document = {
        "code": code,
        "status": 409,
        "title": "No",
        "detail": "Why",
        "errors": [{"pointer": "/steps/1/arguments/lines/0", "detail": "Must be a string."}],
    }
    error = errors.problem(document)
    assert (error.code, error.status, error.detail) == (code, 409, "Why")
    assert error.tell_model.endswith(".")
    assert error.tell_model.count(". ") == 0
    assert "/steps/1/arguments/lines/0: Must be a string." in str(error)


def test_an_argument_is_named_as_the_model_knows_it() -> None:
    fault = {"pointer": "/steps/1/arguments/lines/0/sku", "detail": "Must be a string."}
    error = errors.problem({"code": "invalid-arguments", "errors": [fault]})
    assert error.tell_model == (
        "The arguments do not fit the tool, so nothing was done: lines.0.sku: Must be a string."
    )


def test_an_unknown_code_is_kept() -> None:
    error = errors.problem({"code": "brand-new", "status": 418, "detail": "tea"})
    assert type(error) is errors.ProblemError
    assert (error.code, error.status) == ("brand-new", 418)


@pytest.mark.parametrize(
    ("says", "why", "sentence"),
    [
        ("It ended", None, "It ended."),
        ("It ended", "  ", "It ended."),
        ("It ended", "because.", "It ended: because."),
        ("It ended", "why?", "It ended: why?"),
    ],
)
def test_a_reason_makes_one_sentence(says: str, why: str | None, sentence: str) -> None:
    assert errors.sentence(says, why) == sentence
