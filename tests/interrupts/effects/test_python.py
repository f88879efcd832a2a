"""The executor `python`: tools that a package offers, found as any installed package's are."""

import sys
import textwrap
import threading
from dataclasses import replace
from decimal import Decimal

import pytest

from interrupts.effects import (
    Finding,
    Observed,
    Outcome,
    Preview,
    PreviewFailed,
    Reconciled,
    effect_for,
    offers_of,
)
from interrupts.effects.python import NotInstalled, forget_installed, tool_named

MODULE = """
from decimal import Decimal
from threading import Event
from interrupts.effects import (
    Finding, NotPerformed, Observed, Outcome, Preview, PreviewFailed, PythonTool, Reconciled, Refused,
)

calls = []
let_go = Event()

def hang(arguments, call):
    calls.append(call)
    let_go.wait(60)
    return {"summary": "late"}

hangs = PythonTool(execute=hang, preview=hang)

def echo(arguments, call):
    calls.append(call)
    return {"got": arguments, "key": call.idempotency_key}

def act(arguments, call):
    calls.append(call)
    return eval(arguments["code"])

def fail(arguments, call):
    raise eval(arguments["code"])

async def later(arguments, call):
    return 1

def undo(arguments, call, result, external_id):
    return [arguments, result, external_id]

def with_attributes(arguments, call):
    return 1

with_attributes.preview = act
with_attributes.reconcile = act
with_attributes.compensate = undo

previewed = PythonTool(execute=act, preview=act)
asked_wrongly = PythonTool(execute=act, preview=fail, reconcile=fail, compensate=undo)
number = 7
"""
NAMES = [
    "echo",
    "act",
    "fail",
    "later",
    "with_attributes",
    "previewed",
    "asked_wrongly",
    "number",
    "hangs",
]
PREVIEWS = {"looks.act": "act", "looks.later": "later"}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that offers tools, as far as importlib.metadata can tell."""
    monkeypatch.syspath_prepend(tmp_path)
    installed = []

    def make(package, source, entries, previews=None):
        (tmp_path / f"{package}.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        groups = {"abeyance.tools": entries, "abeyance.previews": previews or {}}
        lines = [
            line
            for group, offers in groups.items()
            for line in (f"[{group}]", *(f"{name} = {package}:{to}" for name, to in offers.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
        installed.append(package)
        forget_installed()

    yield make
    for package in installed:
        sys.modules.pop(package, None)
    forget_installed()


@pytest.fixture
def tools(install):
    install("far_tools", MODULE, {f"tools.{name}": name for name in NAMES}, PREVIEWS)
    import far_tools

    return far_tools


@pytest.fixture
def run(tools, call):
    def run(name, code=None, ask="execute", *more):
        arguments = b"{}" if code is None else b'{"code":"%b"}' % code.replace('"', "'").encode()
        effect = effect_of({"kind": "python"})
        return getattr(effect, ask)(replace(call, tool=f"tools.{name}", arguments=arguments), *more)

    return run


def effect_of(executor, preview=None):
    return effect_for(
        executor, preview=preview, reconcile=None, compensate=None, secret=None, allowed_hosts=[]
    )


def test_a_tool_gets_its_arguments_and_the_call(tools, run, call):
    seen = run("echo")
    assert seen == Observed(Outcome.SUCCEEDED, {"got": {}, "key": "key-1"})
    assert tools.calls[0].timeout == call.timeout


def test_the_function_may_have_another_name_than_the_tool(tools, call):
    effect = effect_of({"kind": "python", "function": "tools.echo"})
    assert effect.execute(call).result["got"] == {"amount": "20.00", "payment": "p-€-1"}


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("None", None),
        ("True", True),
        ("[1, 2.5, (3,)]", [1, 2.5, [3]]),
        ("{'a': {'b': 'é'}}", {"a": {"b": "é"}}),
    ],
)
def test_what_a_tool_returns_is_its_result(run, code, result):
    assert run("act", code) == Observed(Outcome.SUCCEEDED, result)


@pytest.mark.parametrize(
    "code",
    [
        "object()",
        "Decimal(1)",
        "float('nan')",
        "{1, 2}",
        "[chr(0), float('nan')]",
        "{chr(0): 1, chr(0xd800): 2}",
        "'x' * (1024 * 1024)",
        "__import__('functools').reduce(lambda a, _: [a], range(65), 1)",
        "__import__('functools').reduce(lambda a, _: [a], range(100000), 1)",
        "Observed('done')",
        "Observed(Outcome.SUCCEEDED, object())",
        "Observed(Outcome.FAILED, object())",
    ],
)
def test_what_cannot_be_recorded_leaves_the_outcome_unknown(run, code):
    seen = run("act", code)
    assert (seen.outcome, seen.result) == (Outcome.UNKNOWN, None)


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("chr(0)", "\ufffd"),
        ("{'a' + chr(0xd800): (1, True, None)}", {"a\ufffd": [1, True, None]}),
        ("[2 ** 53, -(2 ** 53), 2 ** 53 - 1]", [str(2**53), str(-(2**53)), 2**53 - 1]),
    ],
)
def test_what_cannot_be_kept_of_a_result_is_replaced_and_said(run, code, kept):
    seen = run("act", code)
    assert (seen.outcome, seen.result) == (Outcome.SUCCEEDED, kept)
    assert ("replaced" in (seen.error or "")) == ("\ufffd" in str(kept))


def test_a_tool_may_say_itself_what_was_seen(run):
    seen = run(
        "act", "Observed(Outcome.FAILED, [1], 'x1', Decimal('0.5'), 'no' * 1000, retry_after=9999)"
    )
    assert (seen.outcome, seen.result, seen.external_id) == (Outcome.FAILED, [1], "x1")
    assert (seen.cost, seen.retry_after) == (Decimal("0.5"), 3600.0)
    assert len(seen.error) == 500


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        (
            "NotPerformed('busy', retry_after=3)",
            Observed(Outcome.NOT_PERFORMED, error="busy", retry_after=3.0),
        ),
        (
            "NotPerformed('busy', retry_after='soon')",
            Observed(Outcome.NOT_PERFORMED, error="busy"),
        ),
        ("Refused('no such payment')", Observed(Outcome.FAILED, error="no such payment")),
    ],
)
def test_declared_exceptions_say_what_they_prove(run, code, seen):
    assert run("fail", code) == seen


@pytest.mark.parametrize(
    "code", ["ValueError('card 4111')", "ConnectionRefusedError()", "TimeoutError()", "KeyError(1)"]
)
def test_any_other_exception_leaves_the_outcome_unknown(run, code, caplog):
    seen = run("fail", code)
    assert seen == Observed(
        Outcome.UNKNOWN, error="The tool broke off; whether it acted is not known."
    )
    assert code.partition("(")[0] in caplog.text
    assert "4111" not in caplog.text


@pytest.mark.parametrize("code", ["KeyboardInterrupt()", "SystemExit(1)"])
def test_an_order_to_stop_is_not_swallowed(run, code):
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        run("fail", code)


# What is not there has not begun


def test_a_missing_function_is_not_performed(run):
    seen = run("nowhere")
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert "tools.nowhere" in seen.error


@pytest.mark.parametrize("name", ["later", "number"])
def test_what_is_no_synchronous_function_is_not_performed(run, name):
    assert run(name).outcome is Outcome.NOT_PERFORMED


@pytest.mark.parametrize("source", ["import nowhere_at_all", "1 / 0", "syntax error", ""])
def test_a_package_that_cannot_be_imported_is_not_performed(install, call, source):
    install("broken_tools", source, {"tools.broken": "broken"})
    seen = effect_of({"kind": "python"}).execute(replace(call, tool="tools.broken"))
    assert seen.outcome is Outcome.NOT_PERFORMED


def test_a_name_that_two_packages_offer_is_nobodys(install, call):
    install("one_tools", "def f(a, c): return 1", {"tools.f": "f"})
    install("two_tools", "def f(a, c): return 2", {"tools.f": "f"})
    seen = effect_of({"kind": "python"}).execute(replace(call, tool="tools.f"))
    assert seen.outcome is Outcome.NOT_PERFORMED
    with pytest.raises(NotInstalled, match="Several"):
        tool_named("tools.f")


# Preview, reconcile, compensate


def test_a_function_may_carry_them_as_attributes(tools):
    declared = {"preview": None, "reconcile": None, "compensate": None}
    offers = offers_of({"kind": "python"}, tool="tools.with_attributes", **declared)
    assert (offers.preview, offers.reconcile, offers.compensate) == (True, True, True)
    bare = offers_of({"kind": "python", "function": "tools.echo"}, tool="x", **declared)
    assert (bare.preview, bare.reconcile, bare.compensate) == (False, False, False)
    missing = offers_of({"kind": "python"}, tool="tools.nowhere", **declared)
    assert (missing.preview, missing.reconcile, missing.compensate) == (False, False, False)


@pytest.mark.parametrize(
    "code",
    [
        "Preview('s', [{'object': 'o', 'before': None, 'after': 1}], ['w'], 5)",
        "{'summary': 's', 'changes': [{'object': 'o', 'after': 1}], 'warnings': ['w'], 'fresh_for': 5}",
    ],
)
def test_a_preview_is_read_like_any_other(run, code):
    shown = Preview("s", [{"object": "o", "before": None, "after": 1}], ["w"], 5.0)
    assert run("previewed", code, "preview") == shown


@pytest.mark.parametrize(
    "code",
    ["None", "'s'", "{}", "object()", "1 / 0", "Preview('s', [object()], [], None)"],
)
def test_what_is_no_preview_fails(run, code):
    with pytest.raises(PreviewFailed, match="No preview could be taken"):
        run("previewed", code, "preview")


@pytest.mark.parametrize("code", ["PreviewFailed('not now')", "Refused('not now')"])
def test_a_tool_may_say_why_there_is_no_preview(run, code):
    with pytest.raises(PreviewFailed, match="not now"):
        run("asked_wrongly", code, "preview")


@pytest.mark.parametrize("name", ["echo", "nowhere"])
def test_a_tool_without_them_says_so(run, name):
    with pytest.raises(PreviewFailed):
        run(name, None, "preview")
    assert run(name, None, "reconcile").outcome is Finding.CANNOT_TELL
    assert run(name, None, "compensate", None, None).outcome is not Outcome.SUCCEEDED


def looked_at(call, preview, code):
    arguments = b'{"code":"%b"}' % code.encode()
    effect = effect_of({"kind": "python"}, preview)
    return effect.preview(replace(call, tool="tools.echo", arguments=arguments))


def test_a_declaration_may_name_what_previews_a_tool_that_has_no_preview(tools, call):
    assert looked_at(call, {"function": "looks.act"}, "{'summary': 's'}").summary == "s"
    for breaks in ("1 / 0", "exit(3)", "(_ for _ in ()).throw(KeyboardInterrupt)"):
        with pytest.raises(PreviewFailed, match="broke off"):
            looked_at(call, {"function": "looks.act"}, breaks)


@pytest.mark.parametrize("name", ["looks.nowhere", "looks.later", "tools.echo"])
def test_what_is_not_installed_as_a_preview_previews_nothing(tools, call, name):
    with pytest.raises(PreviewFailed, match=name):
        looked_at(call, {"function": name}, "{'summary': 's'}")
    assert tools.calls == []


@pytest.mark.parametrize(
    ("tool", "declared"), [("tools.echo", {}), ("tools.nowhere", {"function": "x"})]
)
def test_a_preview_that_is_declared_is_owed_wherever_it_is_looked_for(tools, tool, declared):
    parts = {"reconcile": None, "compensate": None}
    assert offers_of({"kind": "python"}, tool=tool, preview=declared, **parts).preview
    assert not offers_of({"kind": "python"}, tool=tool, preview=None, **parts).preview


def test_a_preview_that_is_late_is_left_behind_and_not_asked_without_end(tools, call):
    late = replace(call, tool="tools.hangs", timeout=0.05)
    for _ in range(4):
        with pytest.raises(PreviewFailed, match=r"did not answer within 0\.05 seconds"):
            effect_of({"kind": "python"}).preview(late)
    with pytest.raises(PreviewFailed, match="earlier looks of it have not ended"):
        effect_of({"kind": "python"}).preview(late)
    assert len(tools.calls) == 4

    tools.let_go.set()
    for thread in [one for one in threading.enumerate() if one.name == "look tools.hangs"]:
        thread.join()

    asked_again = effect_of({"kind": "python"}).preview(replace(late, timeout=60))
    assert asked_again.summary == "late"


def test_a_tool_that_is_asked_says_what_it_found(run):
    found = run("with_attributes", "Reconciled(Finding.PERFORMED, [1], 'x1')", "reconcile")
    assert found == Reconciled(Finding.PERFORMED, [1], "x1")


@pytest.mark.parametrize("code", ["ValueError()", "1 / 0"])
def test_a_tool_that_breaks_off_while_asked_cannot_tell(run, code):
    assert run("asked_wrongly", code, "reconcile").outcome is Finding.CANNOT_TELL


@pytest.mark.parametrize("code", ["None", "'performed'", "Reconciled('done')"])
def test_an_answer_that_is_no_finding_cannot_tell(run, code):
    assert run("with_attributes", code, "reconcile").outcome is Finding.CANNOT_TELL


def test_a_compensation_gets_what_was_done(run):
    seen = run("with_attributes", None, "compensate", {"done": 1}, "x1")
    assert seen == Observed(Outcome.SUCCEEDED, [{}, {"done": 1}, "x1"])


def test_the_packages_are_looked_up_once(tools, run, monkeypatch):
    run("echo")

    def again(**_):
        raise AssertionError("looked up again")

    monkeypatch.setattr("interrupts.effects.python.entry_points", again)
    assert run("echo").outcome is Outcome.SUCCEEDED
    assert run("nowhere").outcome is Outcome.NOT_PERFORMED


def test_the_shipped_mail_tool_is_installed():
    forget_installed()
    assert tool_named("mail.send").preview is not None
