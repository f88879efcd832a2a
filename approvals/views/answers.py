"""The answers that a decision page takes, read from its forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from approvals.models import Verdict
from approvals.views.edit_form import said
from config import jsontext
from config.errors import InvalidBody, Problem

UNDO_SECONDS: Final = 10
VERDICTS: Final = {
    "approve": Verdict.APPROVE,
    "reject": Verdict.REJECT,
    "changes": Verdict.REQUEST_CHANGES,
    "respond": Verdict.RESPOND,
}


def read_answer(answer: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return what a form said, as ``decide_gate`` takes it. Raises InvalidBody."""
    refuse_unstorable(sent)
    wanted: dict[str, Any] = {"verdict": VERDICTS[answer].value, "digest": sent.get("digest", "")}
    if answer == "respond":
        return {**wanted, "value": _value(sent)}
    wanted["reason"] = sent.get("reason", "").strip() or None
    wanted["reason_code"] = sent.get("reason_code") or None
    return wanted if answer != "approve" else {**wanted, **_approval(sent)}


def _approval(sent: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "confirmation" in sent:
        given["confirmation"] = sent["confirmation"]
    elif "understood" in sent:
        given["confirmation"] = True
    if "hold" in sent:
        given["hold_seconds"] = UNDO_SECONDS
    if "arguments" in sent:
        given["arguments"] = jsontext.parse(sent["arguments"].encode())
    return given


def _value(sent: Mapping[str, str]) -> Any:
    text = sent.get("value", "")
    if "as_json" not in sent:
        if not text.strip():
            raise InvalidBody.at("/value", "Say what the agent should get.")
        return text.replace("\r\n", "\n")
    try:
        return jsontext.parse(text.encode())
    except Problem as fault:
        wrong = f"This can\u2019t be read as JSON: {said(fault)}"
        raise InvalidBody.at("/value", wrong) from None


def refuse_unstorable(sent: Mapping[str, str]) -> None:
    """Raise InvalidBody where a field holds what no text that is kept may hold."""
    for name, text in sent.items():
        if jsontext.value_faults(text):
            raise InvalidBody.at(f"/{name}", "This holds a character that can't be kept.")
