"""What the learner is asked, what it is told, and what it says: values without a database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Role = Literal["enum", "domain", "path", "number", "id", "text"]
Risk = Literal["low", "medium"]
Verdict = Literal["approve", "reject", "edit"]
State = Literal["proving", "proven", "quarantined", "stopped"]
Kind = Literal[
    "allowed",
    "spot_check",
    "not_proven",
    "unfamiliar_value",
    "unfamiliar_pair",
    "above_ceiling",
    "faded",
    "day_calls",
    "day_sum",
    "quarantine",
    "stopped",
    "asks_everything",
    "not_canonical",
]
IDENTITY_LENGTH: Final = 37  # with its colon
DAY: Final = 86_400
AGENT: Final = "@agent"
_IDENTITY: Final = re.compile(r":[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Tool:
    """One version of a tool as its tenant declared it; another version is another tool here.

    `roles` names each argument that a call may have; what is not named is never learned.
    """

    id: str
    version: int
    risk: Risk
    roles: Mapping[str, Role]


@dataclass(frozen=True, slots=True)
class Request:
    """A call before it is decided; `at` in seconds since 1970 (UTC).

    `context` is what the service itself knows of it (environment, hours, ...), never an agent's
    word. Numbers among the arguments are `int`, `Decimal` or the float of their JSON text.
    `agent` is its name; `identity` which of those that have or had it, empty where it is not known.
    """

    id: str
    at: float
    agent: str
    tool: Tool
    arguments: Mapping[str, Any]
    context: Mapping[str, str] = field(default_factory=dict)
    identity: str = ""

    @property
    def unit(self) -> str:
        """What is learned together: one version of a tool, with the same things known around it."""
        return f"{self.tool.id}@{self.tool.version}:{','.join(sorted(self.context))}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person did; `final` are the arguments after an edit.

    `seconds` is how long the person had it before them, `opened` that they looked at the details,
    `bulk` that it was decided together with others, or without a page.
    """

    decision: Verdict
    seconds: float = 0.0
    opened: bool = False
    bulk: bool = False
    final: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a call is asked, or why it is not: a kind, the fields it is about, and values as text."""

    kind: Kind
    names: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The same in plain words."""
        return _WORDS[self.kind].format_map(_Said(self.names, self._shown()))

    def _shown(self) -> dict[str, str]:
        """The values with agents by their names alone; each is of the field at its place."""
        of = dict(zip(("value", "other"), self.names, strict=False))
        of["scope"] = self.names[-1] if self.names else ""
        return {
            kind: agent_name(value) if of.get(kind) == AGENT else value
            for kind, value in self.values.items()
        }

    def document(self) -> dict[str, Any]:
        return {"kind": self.kind, "names": list(self.names), "values": dict(self.values)}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the learner says of a call.

    `would`: a rule covers it, and only a spot check or a proof not yet complete has it asked.
    `share` is that of covered calls that are asked all the same: over the spot checks, refusals
    divided by it estimate how many calls that ran would have been refused.
    """

    automatic: bool
    would: bool
    spot_check: bool
    reason: Reason
    share: float = 1.0


class _Said(dict[str, str]):
    """The values that a reason's words name."""

    def __init__(self, names: tuple[str, ...], values: Mapping[str, str]) -> None:
        super().__init__(values)
        self["names"] = " and ".join(plain_name(one) for one in names)

    def __missing__(self, key: str) -> str:
        return ""


def agent_value(name: str, identity: str) -> str:
    """Return an agent as rules hold it: another one under its name is another value."""
    return f"{name}:{identity}" if identity else name


def agent_name(value: str) -> str:
    """Return the name of an agent that a rule holds."""
    name, identity = value[:-IDENTITY_LENGTH], value[-IDENTITY_LENGTH:]
    return name if name and _IDENTITY.fullmatch(identity) else value


def plain_name(name: str) -> str:
    """A field's name as people read it: the agent and the context without their mark."""
    return name.removeprefix("@")


_WORDS: Final[Mapping[Kind, str]] = {
    "allowed": "like what you approved",
    "spot_check": "a spot check",
    "not_proven": "{answers} of {needed} answers that it needs",
    "unfamiliar_value": "`{value}` is new",
    "unfamiliar_pair": "`{value}` is new together with `{other}`",
    "above_ceiling": "above what you approved for {scope} ({ceiling})",
    "faded": "`{value}` was last looked at more than {days} days ago",
    "day_calls": "more calls in a day than you approved ({ceiling})",
    "day_sum": "a larger sum of {names} in a day than you approved ({ceiling})",
    "quarantine": "you refused calls like it: {left} more answers without a refusal are needed",
    "stopped": "you stopped the rule",
    "asks_everything": "you asked to see everything",
    "not_canonical": "{names}: {why}",
}
