"""What a declared request may say. Every fault is `(pointer, detail)`, from the part on down."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from config.errors import pointer
from config.jsontext import canonical
from interrupts.effects.declared.filling import segments_of
from interrupts.effects.declared.requests import HEADER_TEXT, URL
from interrupts.effects.declared.rules import question_faults, rules_faults
from interrupts.effects.declared.slots import names_what_is_judged, place_fault, slot_faults
from interrupts.effects.targets import InvalidUrl, target_of

Fault = tuple[str, str]
Check = Callable[[Any], str | None]

MAX_DECLARED: Final = 64 * 1024  # bytes of one part, as canonical JSON
MAX_MEMBERS: Final = 200
MAX_FRESH_FOR: Final = 30 * 24 * 3600
SECRET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_ABOUT_NOTHING: Final = "It does not say what is judged: {receipt.…}, {arguments.…}, {key} or {step} stands nowhere in it."
_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "executor": ("GET", "POST", "PUT", "PATCH", "DELETE"),
    "preview": ("GET", "POST"),
    "reconcile": ("GET", "POST"),
    "compensate": ("POST", "PUT", "PATCH", "DELETE"),
    "verifier": ("GET", "POST"),
}
_PLACES: Final = ("result", "external_id", "cost", "error")
_ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "executor": (*_PLACES, "body"),
    "compensate": (*_PLACES, "body"),
    "reconcile": ("result", "external_id"),
    "verifier": ("words",),
}
_LITERAL: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
# Of the connection and the framing of the message, or said by what the body is made of.
_NOT_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_SIGNS_IN: Final = re.compile(r"(^|[-_])(authorization|cookie|token|secret|password|api-?key|key)$")


def check_part(part: str, declared: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of a part that declares its request; the pointers begin at the part."""
    if len(canonical(declared)) > MAX_DECLARED:
        return [("", f"A declaration has at most {MAX_DECLARED} bytes.")]
    faults = [*_request_faults(part, declared["request"])]
    if "answer" in declared:
        check = _preview_faults if part == "preview" else _answer_faults
        faults += check(part, declared["answer"])
    elif part == "preview":
        faults.append(("/answer", "The member is required: it says what is shown."))
    if "outcomes" in declared:
        faults += rules_faults(part, declared["outcomes"])
    elif part in ("reconcile", "verifier"):
        faults.append(("/outcomes", "The member is required: it says what an answer means."))
    return faults or [*slot_faults(part, declared)] or [*_subject_faults(part, declared)]


def _subject_faults(part: str, declared: Mapping[str, Any]) -> Iterator[Fault]:
    """Check that what is asked about a call is about this one."""
    if part == "reconcile":
        yield from question_faults(declared)
    if part == "verifier" and not names_what_is_judged(declared):
        yield "/request", _ABOUT_NOTHING


# The request


def _request_faults(part: str, request: Any) -> Iterator[Fault]:
    if not isinstance(request, Mapping):
        yield "/request", "An object is expected."
        return
    checks: dict[str, Check] = {
        "method": _one_of(_METHODS[part]),
        "url": _url,
        "query": _members,
        "headers": _mapping,
        "form": _members,
        "json": lambda _: None,
    }
    if part in ("executor", "compensate"):
        checks["idempotency_header"] = _key_header
    if "url" not in request:
        yield "/request/url", "The member is required."
    for name, given in request.items():
        check = checks.get(name)
        if check is None:
            yield pointer("request", name), "No such member is declared here."
        elif detail := check(given):
            yield pointer("request", name), detail
    if isinstance(request.get("headers"), Mapping):
        yield from _header_faults(request)
    yield from _body_faults(part, request)


def _one_of(allowed: tuple[str, ...]) -> Check:
    def check(value: Any) -> str | None:
        return None if value in allowed else f"One of {', '.join(allowed)} is expected."

    return check


def _url(value: Any) -> str | None:
    if not isinstance(value, str):
        return "A URL is a text."
    try:
        target_of(re.sub(r"\{[^{}]*\}", "k", value))
    except InvalidUrl as fault:
        return str(fault)
    if (found := URL.fullmatch(value)) is None:
        return "Names stand in the path only, and the parameters of the query in `query`."
    return _path_fault(found[2] or "/")


def _path_fault(path: str) -> str | None:
    try:
        segments = segments_of(path)
    except ValueError as wrong:
        return str(wrong)
    for segment in segments:
        said = "".join(part for part in segment if isinstance(part, str))
        if not _LITERAL.fullmatch(said):
            return "The path of a URL is written percent-encoded."
        if all(isinstance(part, str) for part in segment) and unquote(said) in (".", ".."):
            return "The path of a URL leads straight to its place."
    return None


def _mapping(value: Any) -> str | None:
    if not isinstance(value, Mapping) or len(value) > MAX_MEMBERS:
        return f"An object of at most {MAX_MEMBERS} members is expected."
    return None


def _members(value: Any) -> str | None:
    """Check names with texts, numbers or truth values, or lists of them: what text can hold."""
    if detail := _mapping(value):
        return detail
    items = [item for given in value.values() for item in _as_list(given)]
    if all(isinstance(item, str | int | float | bool) for item in items):
        return None
    return "Its members are texts, numbers, true and false, or lists of them."


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _key_header(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _TOKEN.fullmatch(value) or value.lower() in _NOT_OURS:
        return "The name of a header is expected, or null where the far end takes no key."
    return None


def _header_faults(request: Mapping[str, Any]) -> Iterator[Fault]:
    key_header = request.get("idempotency_header")
    taken = {key_header.lower()} if isinstance(key_header, str) else set()
    for name, said in request["headers"].items():
        if detail := _header_name(name, taken) or _header_value(name, said):
            yield pointer("request", "headers", name), detail
        taken.add(name.lower())


def _header_name(name: str, taken: set[str]) -> str | None:
    if not _TOKEN.fullmatch(name):
        return "This can be no header's name."
    if name.lower() in _NOT_OURS:
        return "This header is the service's own to send."
    return "This header is there twice." if name.lower() in taken else None


def _header_value(name: str, said: Any) -> str | None:
    if isinstance(said, Mapping):
        return _credential(said)
    if not isinstance(said, str):
        return 'A header is a text, or {"secret": name}.'
    if _SIGNS_IN.search(name.lower()):
        return 'What signs in is a secret: {"secret": name}, with a prefix or a user.'
    if not HEADER_TEXT.fullmatch(said):
        return "A header is one line of printable ASCII, with no space at its ends."
    return None


def _credential(said: Mapping[str, Any]) -> str | None:
    if "secret" not in said or not said.keys() <= {"secret", "prefix", "user"}:
        return "Beside the name of a secret stands a prefix or a user."
    if not all(isinstance(value, str) for value in said.values()):
        return "The name of a secret, a prefix and a user are texts."
    if not SECRET_NAME.fullmatch(said["secret"]):
        return "This can be no secret's name."
    if "prefix" in said and (
        "user" in said or not re.fullmatch(r"[!-~][ -~]{0,99}", said["prefix"])
    ):
        return "A prefix is 1 to 100 characters of printable ASCII, and stands beside no user."
    if "user" in said and not re.fullmatch(r"[!-9;-~]{0,200}", said["user"]):
        return "A user is at most 200 characters of printable ASCII without a colon."
    return None


def _body_faults(part: str, request: Mapping[str, Any]) -> Iterator[Fault]:
    if "json" in request and "form" in request:
        yield "/request/form", "A request has one body: json or form."
    usual = "POST" if part in ("executor", "compensate") else "GET"
    if request.get("method", usual) == "GET":
        for body in sorted({"json", "form", "idempotency_header"} & request.keys()):
            yield pointer("request", body), "A GET carries none."


# The answer


def _answer_faults(part: str, answer: Any) -> Iterator[Fault]:
    if not isinstance(answer, Mapping):
        yield "/answer", "An object is expected."
        return
    for name, said in answer.items():
        check = _ANSWER_CHECKS[name] if name in _ANSWERS[part] else _undeclared
        if detail := check(said):
            yield pointer("answer", name), detail
    if answer.get("body") == "none":
        for name in sorted({"result", "cost"} & answer.keys()):
            yield pointer("answer", name), "An answer without a body holds none."


def _undeclared(_said: Any) -> str:
    return "No such member is declared here."


def _external_id(said: Any) -> str | None:
    return _of_header(said) if isinstance(said, Mapping) else place_fault(said)


def _of_header(said: Mapping[str, Any]) -> str | None:
    name = said.get("header")
    if len(said) == 1 and isinstance(name, str) and _TOKEN.fullmatch(name):
        return None
    return 'A JSON pointer is expected, or {"header": name}.'


_ANSWER_CHECKS: Final[Mapping[str, Check]] = {
    "result": place_fault,
    "external_id": _external_id,
    "cost": place_fault,
    "error": place_fault,
    "words": place_fault,
    "body": _one_of(("json", "none")),
}


def _preview_faults(_part: str, answer: Any) -> Iterator[Fault]:
    if not isinstance(answer, Mapping):
        yield "/answer", "An object is expected."
        return
    if "summary" not in answer:
        yield "/answer/summary", "The member is required."
    for name, said in answer.items():
        if detail := _SHOWN_CHECKS.get(name, _undeclared)(said):
            yield pointer("answer", name), detail


def _summary(said: Any) -> str | None:
    return None if isinstance(said, str) and said else "A text is expected."


def _warnings(said: Any) -> str | None:
    if isinstance(said, list) and not any(_summary(one) for one in said):
        return None
    return "A list of texts is expected."


def _changes(said: Any) -> str | None:
    if isinstance(said, list) and all(_is_change(one) for one in said):
        return None
    return 'A list of {"object": text, "before", "after"} is expected.'


def _is_change(value: Any) -> bool:
    if not isinstance(value, Mapping) or not value.keys() <= {"object", "before", "after"}:
        return False
    return _summary(value.get("object")) is None


def _fresh_for(said: Any) -> str | None:
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    if is_number and 0 <= said <= MAX_FRESH_FOR:
        return None
    return f"Seconds from 0 to {MAX_FRESH_FOR} are expected."


_SHOWN_CHECKS: Final[Mapping[str, Check]] = {
    "summary": _summary,
    "changes": _changes,
    "warnings": _warnings,
    "fresh_for": _fresh_for,
}
