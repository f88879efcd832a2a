"""Who judges what was done: asked by signed requests, or an installed function; and what is no ruling."""

import sys
from dataclasses import replace

import pytest
from standardwebhooks import Webhook

from config.jsontext import digest
from interrupts.declarations import check_tool, form_digest, full_form, secret_faults
from interrupts.effects import Ruling, Says, Seen, judge_for, needs_secret
from interrupts.effects.python import forget_installed
from interrupts.effects.validation import check_effect
from tests.interrupts.effects.conftest import SECRET
from tests.interrupts.effects.far_end import answering, resetting, sending

SEEN = Seen("receipt-1", "executor", {"refunded": "20.00"}, "tx-1", "2026-01-01T00:00:00+00:00")
URL = "https://audit.test/verdicts"
OK = {"where": {"/state": ["fine"]}}
NO_PARTS = {"preview": None, "reconcile": None, "compensate": None}
CHECKER = {
    "kind": "http",
    "request": {
        "method": "POST",
        "url": URL,
        "headers": {"X-Api-Key": {"secret": "checker"}},
        "json": {
            "paid": "{arguments.amount}",
            "answer": "{receipt.result}",
            "tx": "{receipt.external_id}",
            "of": "{tenant} {tool} {tool_version}",
        },
    },
    "answer": {"words": "/why/text"},
    "outcomes": [
        {"status": 200, **OK, "means": "passed"},
        {"status": 200, "where": {"/state": ["wrong"]}, "means": "rejected"},
        {"status": 422, "means": "rejected"},
    ],
}
TOOL = {
    "name": "t",
    "effect": "idempotent",
    "risk": "low",
    "arguments": {"type": "object"},
    "executor": {"kind": "agent"},
}


@pytest.fixture
def judge(far_end):
    declared = {"kind": "http", "url": f"http://{far_end.authority}/verdicts"}
    return judge_for(declared, secret=SECRET, allowed_hosts=[far_end.authority]).judge


def test_a_far_end_is_asked_by_a_signed_request_with_the_call_and_its_receipt(far_end, call, judge):
    far_end.behave = answering(200, {"verdict": "rejected", "words": "twice\n the \x00 amount"})
    assert judge(call, SEEN) == Ruling(Says.REJECTED, "twice the \N{REPLACEMENT CHARACTER} amount")
    [asked] = far_end.asked
    assert (asked.method, asked.path) == ("POST", "/verdicts")
    assert asked.json() == {
        "tool": "payments.refund",
        "tool_version": 3,
        "arguments": {"amount": "20.00", "payment": "p-€-1"},
        "run": "run-1",
        "step": "step-1",
        "receipt": {
            "id": "receipt-1",
            "source": "executor",
            "result": {"refunded": "20.00"},
            "external_id": "tx-1",
            "observed_at": "2026-01-01T00:00:00+00:00",
        },
    }
    Webhook(SECRET).verify(asked.body, asked.headers)
    far_end.behave = answering(201, {"verdict": "passed", "words": 1})
    assert judge(call, SEEN) == Ruling(Says.PASSED)
    far_end.behave = answering(200, {"verdict": "rejected", "words": "x" * 600})
    assert len(judge(call, SEEN).words) == 500


@pytest.mark.parametrize(
    "behaviour",
    [
        *(answering(status, {"verdict": "passed"}) for status in (302, 400, 404, 429, 500)),
        answering(200, {"verdict": "Passed"}),
        answering(200, {"verdict": ["passed"]}),
        answering(200, {"verdict": True}),
        answering(200, {"words": "passed"}),
        answering(200, ["passed"]),
        answering(200, b"passed"),
        answering(200, b'{"verdict": "passed", "words": "%b"}' % (b"x" * 1024 * 1024)),
        sending(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"verdict": "passed"}'),
        resetting,
    ],
)
def test_whatever_else_comes_back_is_no_ruling(far_end, call, judge, behaviour):
    far_end.behave = behaviour
    ruling = judge(call, SEEN)
    assert (ruling.says, ruling.words) == (None, "")
    assert ruling.error
    assert len(far_end.asked) == 1


def test_a_far_end_that_is_not_allowed_or_too_slow_is_not_heard(far_end, call):
    declared = {"kind": "http", "url": f"http://{far_end.authority}/verdicts"}
    ruling = judge_for(declared, secret=SECRET, allowed_hosts=[]).judge(call, SEEN)
    assert (ruling.says, far_end.connections) == (None, 0)
    far_end.behave = lambda *_: far_end.closing.wait(5)
    judge = judge_for(declared, secret=SECRET, allowed_hosts=[far_end.authority])
    assert judge.judge(replace(call, timeout=0.2), SEEN).says is None


@pytest.fixture
def installed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "far_checks.py").write_text(
        "from interrupts.effects import Ruling, Says\n"
        "def amount(arguments, receipt, call):\n"
        "    same = arguments['amount'] == receipt['result']['refunded']\n"
        "    return Ruling(Says.PASSED if same else Says.REJECTED, 'so ' + call.tool)\n"
        "def breaks(arguments, receipt, call):\n"
        "    raise ValueError(arguments['payment'])\n"
        "def forgets(arguments, receipt, call):\n"
        "    return None\n"
        "def agrees(arguments, receipt, call):\n"
        "    return True\n"
    )
    info = tmp_path / "far_checks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: far-checks\nVersion: 1.0\n")
    names = ("amount", "breaks", "forgets", "agrees")
    lines = [f"checks.{name} = far_checks:{name}" for name in names]
    (info / "entry_points.txt").write_text("\n".join(["[abeyance.verifiers]", *lines, ""]))
    forget_installed()
    yield
    sys.modules.pop("far_checks", None)
    forget_installed()


def test_an_installed_function_judges_and_what_it_does_else_is_no_ruling(installed, call, caplog):
    def ruling(name, seen=SEEN):
        declared = {"kind": "python", "function": f"checks.{name}"}
        return judge_for(declared, secret=None, allowed_hosts=[]).judge(call, seen)

    assert ruling("amount") == Ruling(Says.PASSED, "so payments.refund")
    other = replace(SEEN, result={"refunded": "40.00"})
    assert ruling("amount", other).says == Says.REJECTED
    for name in ("breaks", "forgets", "agrees", "nothing"):
        assert ruling(name).says is None
        assert ruling(name).error
    assert "p-€-1" not in caplog.text


@pytest.mark.parametrize(
    ("verifier", "place"),
    [
        ({"kind": "http", "url": URL}, None),
        ({"kind": "http", "url": URL, "timeout": 5, "attempts": 1, "backoff": 0.5}, None),
        ({"kind": "http", "url": URL, "before_next": False}, None),
        ("x", "/verifier"),
        ({}, "/verifier/kind"),
        ({"kind": "agent"}, "/verifier/kind"),
        ({"kind": "http"}, "/verifier/url"),
        ({"kind": "http", "url": "ftp://a.test"}, "/verifier/url"),
        ({"kind": "http", "url": URL + "/{key}"}, "/verifier/url"),
        ({"kind": "http", "url": URL, "function": "f"}, "/verifier/function"),
        ({"kind": "http", "request": {"url": URL}}, "/verifier/outcomes"),
        ({"kind": "python", "request": {"url": URL}}, "/verifier/function"),
        ({"kind": "http", "url": URL, "timeout": 0}, "/verifier/timeout"),
        ({"kind": "http", "url": URL, "attempts": 101}, "/verifier/attempts"),
        ({"kind": "http", "url": URL, "backoff": "1"}, "/verifier/backoff"),
        ({"kind": "http", "url": URL, "before_next": "no"}, "/verifier/before_next"),
        ({"kind": "python"}, "/verifier/function"),
        ({"kind": "python", "function": "not.installed"}, "/verifier/function"),
    ],
)
def test_a_declaration_is_checked_with_the_place_of_each_fault(verifier, place):
    faults = [at for at, _ in check_effect({"executor": {"kind": "agent"}, "verifier": verifier})]
    assert faults[:1] == ([] if place is None else [place])


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({}, None),
        ({"timeout": 5, "attempts": 2, "before_next": False}, None),
        ({"answer": {}}, None),
        ({"url": URL}, "/verifier/url"),
        ({"attempts": 0}, "/verifier/attempts"),
        ({"answer": {"result": ""}}, "/verifier/answer/result"),
        ({"answer": {"words": "why"}}, "/verifier/answer/words"),
        ({"outcomes": []}, "/verifier/outcomes"),
        ({"outcomes": [{"status": 200, "means": "performed"}]}, "/verifier/outcomes/0/means"),
        # A status of whoever stands before the checker lets nothing pass.
        ({"outcomes": [{"status": 200, "means": "passed"}]}, "/verifier/outcomes/0/means"),
        ({"outcomes": [{"status": "2xx", "means": "passed"}]}, "/verifier/outcomes/0/means"),
        ({"outcomes": [{"status": 204, "means": "passed"}]}, None),
        ({"outcomes": [{"status": 404, **OK, "means": "passed"}]}, "/verifier/outcomes/0/means"),
        ({"outcomes": [{"status": 302, "means": "rejected"}]}, "/verifier/outcomes/0/means"),
        ({"outcomes": [{"status": 504, **OK, "means": "rejected"}]}, "/verifier/outcomes/0/means"),
        ({"outcomes": [{"status": 500, "means": "rejected"}]}, "/verifier/outcomes/0/means"),
        ({"outcomes": [{"status": 500, **OK, "means": "rejected"}]}, None),
        ({"outcomes": [{"status": "4xx", "means": "rejected"}]}, None),
        ({"request": {"url": f"{URL}/{{run}}"}}, "/verifier/request"),
        ({"request": {"url": f"{URL}/{{receipt}}"}}, "/verifier/request/url"),
        ({"request": {"url": f"{URL}/{{result.id}}"}}, "/verifier/request/url"),
        ({"request": {"url": f"{URL}/{{receipt.external_id}}"}}, None),
        ({"request": {"url": f"{URL}/{{receipt.result.card}}"}}, "/verifier/request/url"),
        ({"request": {"url": f"{URL}/{{arguments.card}}"}}, "/verifier/request/url"),
        ({"request": {"url": f"{URL}/{{arguments.none}}"}}, "/verifier/request/url"),
        ({"request": {"url": f"{URL}/{{key}}", "json": {}}}, "/verifier/request/json"),
        ({"request": {"method": "PUT", "url": f"{URL}/{{key}}"}}, "/verifier/request/method"),
        (
            {"request": {"method": "POST", "url": f"{URL}/{{key}}", "idempotency_header": "K"}},
            "/verifier/request/idempotency_header",
        ),
    ],
)
def test_a_declared_checkers_answers_claim_no_more_than_they_can_prove(change, place):
    members = {"card": {"type": "string"}, "amount": {"type": "string"}}
    schema = {"type": "object", "properties": members}
    tool = {**TOOL, "arguments": schema, "sensitive": ["/card"]}
    faults = [at for at, _ in check_tool({**tool, "verifier": {**CHECKER, **change}})]
    assert faults == ([] if place is None else [place])
    assert not needs_secret(TOOL["executor"], **NO_PARTS, verifier=CHECKER)
    [(missing, _)] = secret_faults([{**tool, "verifier": CHECKER}], [])
    assert missing == "/0/verifier/request/headers/X-Api-Key"


@pytest.fixture
def check(far_end):
    """Judge a receipt by a checker of its own protocol at the far end."""

    def check(call, seen=SEEN, secrets=("sk-checker",), allowed=None):
        request = {**CHECKER["request"], "url": f"http://{far_end.authority}/audits/{{key}}"}
        declared = {**CHECKER, "request": request}
        judge = judge_for(
            declared,
            secret=SECRET,
            allowed_hosts=[far_end.authority] if allowed is None else allowed,
            tenant="acme",
            read_secrets=lambda names: dict(zip(sorted(names), secrets, strict=False)),
        )
        return judge.judge(call, seen)

    return check


def test_a_declared_checker_is_asked_in_its_own_protocol(far_end, call, check):
    far_end.behave = answering(
        200, {"state": "wrong", "why": {"text": "sk-checker saw\n twice the amount"}}
    )
    assert check(call) == Ruling(Says.REJECTED, "••• saw twice the amount")
    [asked] = far_end.asked
    assert (asked.method, asked.path) == ("POST", "/audits/key-1")
    assert asked.headers["x-api-key"] == "sk-checker"
    assert asked.json() == {
        "paid": "20.00",
        "answer": {"refunded": "20.00"},
        "tx": "tx-1",
        "of": "acme payments.refund 3",
    }
    assert not [name for name in asked.headers if name.startswith("webhook")]
    for status, body, ruling in (
        (200, {"state": "fine"}, Ruling(Says.PASSED)),
        (200, {"state": "fine", "why": {"text": 7}}, Ruling(Says.PASSED)),
        (422, {"why": {"text": "no"}}, Ruling(Says.REJECTED, "no")),
        (
            200,
            {"state": "wrong", "why": {"text": "x" * 600}},
            Ruling(Says.REJECTED, "x" * 499 + "…"),
        ),
    ):
        far_end.behave = answering(status, body)
        assert check(call) == ruling


@pytest.mark.parametrize(
    "behaviour",
    [
        answering(200, {"state": "Fine"}),
        answering(200, {"state": ["fine"]}),
        answering(200, {"verdict": "passed"}),
        answering(200, b""),
        answering(200, b"fine"),
        answering(422, b"<html>"),
        answering(201, {"state": "fine"}),
        *(answering(status, {"state": "fine"}) for status in (204, 302, 404, 408, 429, 500, 504)),
        sending(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"state": "fine"}'),
        resetting,
    ],
)
def test_what_no_rule_is_about_is_no_ruling(far_end, call, check, behaviour):
    far_end.behave = behaviour
    ruling = check(call)
    assert (ruling.says, ruling.words) == (None, "")
    assert ruling.error
    assert len(far_end.asked) == 1


def test_a_checker_that_cannot_be_asked_rules_nothing(far_end, call, check):
    far_end.behave = answering(200, {"state": "fine"})
    assert check(call, secrets=()).error == (
        "The secret checker is not set; the call was not begun."
    )
    assert check(call, allowed=[]).says is None
    assert check(replace(call, idempotency_key="..")).says is None
    assert far_end.connections == 0
    far_end.behave = lambda *_: far_end.closing.wait(5)
    assert check(replace(call, timeout=0.2)).says is None


def test_an_http_verifier_needs_the_tools_secret_and_makes_a_version_of_its_own():
    verifier = {"kind": "http", "url": URL}
    assert check_tool({**TOOL, "verifier": verifier}) == []
    plain, judged = full_form(TOOL), full_form({**TOOL, "verifier": verifier})
    assert judged["verifier"] == {
        **verifier,
        "timeout": 10,
        "attempts": 5,
        "backoff": 2,
        "before_next": True,
    }
    parts = {"preview": None, "reconcile": None, "compensate": None}
    assert needs_secret(judged["executor"], **parts, verifier=judged["verifier"])
    assert not needs_secret(plain["executor"], **parts, verifier=plain["verifier"])
    assert form_digest(plain) != form_digest(judged)


def test_a_tool_without_one_is_the_version_that_it_was_before_there_were_verifiers():
    form = full_form(TOOL)
    before = {name: said for name, said in form.items() if name not in {"verifier", "decisions"}}
    assert form_digest(form) == digest(before)
