"""Arguments in the one form that is learned from, by the roles that their tool declares.

What has no such form is never automatic and teaches nothing: `Unclear` says which argument and
why. Nothing is repaired here, since what carries the call out would read the original.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NoReturn

from delegation.lookalikes import is_lookalike
from delegation.records import AGENT, Reason, Request, Role, agent_value

MARK: Final = "@"  # before the names of what is no argument
FREE: Final = "-"  # in the place of an identifier that is not kept
RISKS: Final = ("low", "medium")
LARGEST: Final = Decimal(2**53 - 1)
LONGEST: Final = 200  # characters of a value
PLACES: Final = 12  # decimals

_AMOUNT: Final = re.compile(r"(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,12})?")
_HOST: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
)
_CONSTANT: Final = re.compile(r"=(?:null|true|false|0|-?[1-9][0-9]{0,15})")
_MAILBOX: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
# What another reader of a value would give a meaning of its own: shells, SQL, globs, templates.
_ACTIVE: Final = re.compile(r"[;|&$<>`'\"\\*?(){}\[\]!#=%^~]|--|\.\.|//")
_ACTIVE_PATH: Final = re.compile(r"[;|&$<>`'\"\\*?(){}\[\]!#=%^~:]")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Me"})


class Unclear(ValueError):
    """An argument has no canonical form; `name` says which, `why` in plain words."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name
        self.why = why

    @property
    def reason(self) -> Reason:
        return Reason("not_canonical", (self.name,), {"why": self.why})


@dataclass(frozen=True, slots=True)
class Canonical:
    """A call as it is compared: values by field, amounts by argument, and arguments left free.

    Fields are the arguments' names; the agent is `@agent` and what the service knows `@<name>`.
    """

    values: Mapping[str, str]
    amounts: Mapping[str, Decimal]
    free: frozenset[str]


def canonical(request: Request, arguments: Mapping[str, Any] | None = None) -> Canonical:
    """Return the call's canonical form, or that with other arguments. Raises `Unclear`."""
    given = request.arguments if arguments is None else arguments
    roles = request.tool.roles
    if request.tool.risk not in RISKS:
        raise Unclear("tool", "calls of its risk are never learned")
    _same_names(roles, given)
    values = {AGENT: agent_value(plain_text(AGENT, request.agent), request.identity)}
    for name, known in request.context.items():
        values[MARK + name] = plain_text(MARK + name, known)
    amounts: dict[str, Decimal] = {}
    free = set()
    for name, role in roles.items():
        if role == "number":
            amounts[name] = amount(name, given[name])
        elif role == "id":
            free.add(_identifier(name, given[name]))
        else:
            values[name] = _READERS.get(role, _text)(name, given[name])
    return Canonical(values, amounts, frozenset(free))


def read(text: bytes) -> dict[str, Any]:
    """Read a call's arguments from JSON, numbers exactly.

    Raises `Unclear` for what two readers could understand differently: a member given twice, NaN,
    infinities, or what is no object.
    """
    try:
        found = json.loads(
            text, object_pairs_hook=_once, parse_float=Decimal, parse_constant=_constant
        )
    except (ValueError, RecursionError) as fault:
        if isinstance(fault, Unclear):
            raise
        raise Unclear("arguments", "no JSON") from None
    if not isinstance(found, dict):
        raise Unclear("arguments", "no object")
    return found


def amount(name: str, given: Any) -> Decimal:
    """Return an amount exactly: not negative, finite, at most 2^53-1, without an exponent."""
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal | str):
        raise Unclear(name, "no number")
    if isinstance(given, str):
        if not _AMOUNT.fullmatch(given):
            raise Unclear(name, "no plain decimal number")
        found = Decimal(given)
    else:
        # A float is the shortest text that reads as it: the canonical JSON it came from.
        found = Decimal(repr(given)) if isinstance(given, float) else Decimal(given)
    if not found.is_finite() or found.is_signed() or found > LARGEST:
        raise Unclear(name, "no number from 0 to 2^53-1")
    if -int(found.as_tuple().exponent) > PLACES:
        raise Unclear(name, "more decimals than amounts have")
    return found


def check_listed(role: Role | None, name: str, value: str) -> None:
    """See that a call may have the value that a rule lists for a field. Raises `Unclear`."""
    if role == "enum" and _CONSTANT.fullmatch(value):
        if value[1:].lstrip("-").isdecimal():
            _one_of(name, int(value[1:]))
        return
    if role == "path":
        found = _folder(name, "_" if value == "." else f"{value.removesuffix('/')}/_")
    else:
        found = _READERS.get(role or "", plain_text)(name, value)
    if found != value:
        raise Unclear(name, "not as it is compared")


def plain_text(name: str, given: Any) -> str:
    """Return a text that reads one way only. Raises `Unclear`."""
    if not isinstance(given, str):
        raise Unclear(name, "no text")
    if not given or len(given) > LONGEST:
        raise Unclear(name, "empty or too long to be one of a list")
    if given.isascii():
        if given.isprintable() and given == given.strip():
            return given
        raise Unclear(name, "holds what does not show")
    return _beyond_ascii(name, given)


def _beyond_ascii(name: str, given: str) -> str:
    if unicodedata.normalize("NFKC", given) != given:
        raise Unclear(name, "written in a form that others would rewrite")
    if any(unicodedata.category(one) in _INVISIBLE and one != " " for one in given):
        raise Unclear(name, "holds what does not show")
    if given != given.strip():
        raise Unclear(name, "holds what does not show")
    if is_lookalike(given):
        raise Unclear(name, "holds letters that look like others")
    return given


def _same_names(roles: Mapping[str, Role], given: Mapping[str, Any]) -> None:
    for name in sorted(given):
        if name not in roles:
            raise Unclear(name if _NAME.fullmatch(name) else "arguments", "no declared argument")
    for name in sorted(roles):
        if not _NAME.fullmatch(name):
            raise Unclear("arguments", "a name that cannot be told from others")
        if name not in given:
            raise Unclear(name, "missing")


def _one_of(name: str, given: Any) -> str:
    if given is None or isinstance(given, bool):
        return "=" + json.dumps(given)
    if isinstance(given, int):
        if abs(given) > LARGEST:
            raise Unclear(name, "no number from 0 to 2^53-1")
        return f"={given}"
    found = plain_text(name, given)
    if _ACTIVE.search(found):
        raise Unclear(name, "reads as more than one of a list")
    return found


def _domain(name: str, given: Any) -> str:
    found = plain_text(name, given)
    mailbox, at, host = found.rpartition("@")
    if at and not _MAILBOX.fullmatch(mailbox):
        raise Unclear(name, "no plain mail address")
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise Unclear(name, "no plain domain")
    if any(label.startswith("xn--") or label[2:4] == "--" for label in host.split(".")):
        raise Unclear(name, "a domain in another alphabet")
    return host


def _folder(name: str, given: Any) -> str:
    """The folder that a file is in, of a path that means the same to everybody."""
    found = plain_text(name, given)
    if _ACTIVE_PATH.search(found):
        raise Unclear(name, "holds what others would read as more than a path")
    parts = found.removeprefix("/").split("/")
    if any(one in {"", ".", ".."} or one != one.strip() for one in parts):
        raise Unclear(name, "no normalised path")
    if any(one.startswith("-") for one in parts):
        raise Unclear(name, "reads as an option")
    folder = "/".join(parts[:-1])
    return f"/{folder}" if found.startswith("/") else folder or "."


def _identifier(name: str, given: Any) -> str:
    """An identifier is free, so what could be prose, a query, a command or an option is none."""
    if isinstance(given, int) and not isinstance(given, bool):
        return name
    found = plain_text(name, given)
    if _ACTIVE.search(found) or " " in found or (found.startswith("-") and found != FREE):
        raise Unclear(name, "reads as more than an identifier")
    return name


def _text(name: str, _given: Any) -> NoReturn:
    raise Unclear(name, "free text is never learned")


_READERS: Final[Mapping[str, Callable[[str, Any], str]]] = {
    "enum": _one_of,
    "domain": _domain,
    "path": _folder,
}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Unclear("arguments", "a member is given twice")
    return members


def _constant(text: str) -> NoReturn:
    raise Unclear("arguments", f"{text} is no number")
