"""What a gate shows: what, why, what could go wrong, in which ceremony, under which digests.

All of it is made by the service from what is stored. The agent's own words are kept apart, under
``why`` and ``named_by_agent``, and are text, never markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from approvals.models import Ceremony, Gate
from config import jsontext
from config.keys import current_key_id, derive
from interrupts import templates
from interrupts.digests import call_digest
from interrupts.effects import Preview, PreviewFailed
from interrupts.models import Effect, Risk, Run, Step, ToolVersion
from tenants import imprints

MAX_PREVIEW_BYTES: Final = 64 * 1024
MAX_PREVIOUS: Final = 20

_BY_RISK: Final = {
    Risk.LOW: Ceremony.SINGLE,
    Risk.MEDIUM: Ceremony.REVIEW,
    Risk.HIGH: Ceremony.EXPLICIT,
}
_ORDER: Final = (Ceremony.SINGLE, Ceremony.REVIEW, Ceremony.EXPLICIT, Ceremony.TYPED)


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that people are asked about: the version of its tool, and its arguments."""

    tool: str
    version: ToolVersion
    arguments: Any

    @property
    def sensitive(self) -> list[str]:
        paths: list[str] = self.version.sensitive
        return paths

    @property
    def headline(self) -> str:
        return self._rendered(self.version.headline) or self.tool

    @property
    def consequence(self) -> str:
        return self._rendered(self.version.consequence)

    @property
    def confirmation(self) -> str:
        """What is typed where the ceremony is typed: the tool's name where it says nothing."""
        return self._rendered(self.version.confirmation) or self.tool

    def _rendered(self, template: str) -> str:
        return templates.render(template, self.arguments, self.sensitive) if template else ""

    def digested(self, tenant_id: UUID) -> Any:
        """Return the arguments as they enter a digest that is shown: no secret can be guessed."""
        if not self.sensitive:
            return self.arguments
        return templates.with_hmac(self.arguments, self.sensitive, _key(tenant_id))


class PreviousStep(NamedTuple):
    """A step as far as the gate of a later one shows it."""

    id: UUID
    position: int
    tool_name: str
    status: str
    outcome: str | None

    @property
    def shown(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "position": self.position,
            "tool": self.tool_name,
            "status": self.status,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class Taken:
    """What a look at the tool's preview gave: what is shown of it, or why there is none."""

    observed_at: datetime
    shown: dict[str, Any] | None = None
    error: str | None = None
    fresh_until: datetime | None = None


@lru_cache(maxsize=1024)
def _sensitive_key(tenant_id: UUID, key_id: str) -> bytes:
    return derive("sensitive", tenant_id, key_id=key_id)


def _key(tenant_id: UUID) -> bytes:
    return _sensitive_key(tenant_id, current_key_id())


def ceremony_of(version: ToolVersion) -> Ceremony:
    """Return what approving a call of this version takes, where its preview is no obstacle."""
    if version.effect == Effect.IRREVERSIBLE:
        return Ceremony.TYPED
    return _BY_RISK[Risk(version.risk)]


def raised(ceremony: Ceremony) -> Ceremony:
    """Return the next stricter ceremony; the strictest stays."""
    return _ORDER[min(_ORDER.index(ceremony) + 1, len(_ORDER) - 1)]


def arguments_digest(asked: Asked, tenant_id: UUID) -> str:
    return jsontext.digest(asked.digested(tenant_id))


VIEW: Final = ("id", "tenant_id", "gate_id", "user_id", "digest", "snapshot", "at")


def vouched(run: UUID, view: Any, key_id: str | None = None) -> str:
    """Return the key's id and the keyed digest of who was shown what and when."""
    key_id = key_id or current_key_id()
    return f"{key_id}:{imprints.of_row(run, view, VIEW, key_id=key_id)}"


def what_digest(asked: Asked, tenant_id: UUID, preview: Mapping[str, Any] | None) -> str:
    """Return the digest of all that is shown as what; the preview's times are not in it."""
    shown = None
    if preview is not None:
        shown = {name: preview[name] for name in ("summary", "changes", "warnings")}
    return jsontext.digest(
        {
            "tool": asked.tool,
            "tool_version": asked.version.number,
            "arguments": asked.digested(tenant_id),
            "preview": shown,
        }
    )


def preview_shown(preview: Preview, asked: Asked) -> dict[str, Any]:
    """Return a preview as it is kept and shown, without the arguments' sensitive values.

    Raises PreviewFailed where it is too large to be read by a person.
    """
    shown = {
        "summary": preview.summary,
        "changes": preview.changes,
        "warnings": preview.warnings,
    }
    if len(jsontext.canonical(shown)) > MAX_PREVIEW_BYTES:
        raise PreviewFailed(f"The preview is larger than {MAX_PREVIEW_BYTES} bytes.")
    return templates.concealed(shown, asked.arguments, asked.sensitive)


def why(
    run: Run, step: Step, asked: Asked, previous: Sequence[PreviousStep] | None
) -> dict[str, Any]:
    """Return why the agent wants it, in its own words: untrusted text, to be shown as such.

    Without ``previous`` the steps before it are not kept: they are read whenever it is shown.
    """
    said: Mapping[str, Any] = step.proposal
    return {
        "goal": run.goal,
        "started_by": [str(above) for above in reversed(run.path)],
        "reasoning": said.get("reasoning"),
        "confidence": said.get("confidence"),
        "risk_score": said.get("risk_score"),
        "milestone": said.get("milestone"),
        "dry_run": dry_run(step, asked),
        "previous_steps": None if previous is None else [one.shown for one in previous],
    }


def dry_run(step: Step, asked: Asked) -> dict[str, Any] | None:
    """Return the dry run that the agent attached to its proposal: its word, and no preview.

    It is ``outdated`` where other arguments are asked about than those it was made with.
    """
    said = step.proposal.get("dry_run")
    if said is None:
        return None
    call = call_digest(asked.tool, jsontext.canonical(asked.arguments))
    shown = templates.concealed(said, asked.arguments, asked.sensitive)
    return {**shown, "outdated": call != step.proposed_digest}


def differs_in(dry_run: Mapping[str, Any], preview: Mapping[str, Any] | None) -> list[str] | None:
    """Return the objects of which a tool's preview says something else than the agent's dry run.

    None where it can't be told: there is no preview, it names no change, or the dry run is outdated.
    """
    if preview is None or not preview["changes"] or dry_run["outdated"]:
        return None
    told, said = _by_object(preview), _by_object(dry_run)
    return [name for name in {**told, **said} if told.get(name) != said.get(name)]


def _by_object(shown: Mapping[str, Any]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for change in shown["changes"]:
        found.setdefault(change["object"], []).append(
            jsontext.canonical([change["before"], change["after"]])
        )
    return {name: sorted(changes) for name, changes in found.items()}


def risks(version: ToolVersion, step: Step, *, undoable: bool) -> dict[str, Any]:
    """Return what could go wrong: what the tool declares, and apart from it what the agent adds."""
    return {
        "failure_modes": list(version.failure_modes),
        "named_by_agent": list(step.proposal.get("failure_modes") or ()),
        "reversible": version.effect in {Effect.READ, Effect.REVERSIBLE},
        "compensation": "The tool can undo it afterwards." if undoable else None,
        "blast_radius": version.blast_radius or None,
    }


def what(gate: Gate, arguments: Any, version: ToolVersion) -> dict[str, Any]:
    """Return what is asked about; values at the tool's sensitive paths are masked."""
    preview = gate.preview
    if preview is not None:
        preview = {**preview, "fresh_until": instant(gate.fresh_until)}
    return {
        "headline": gate.headline,
        "consequence": gate.consequence or None,
        "tool": gate.step.tool_name,
        "tool_version": version.number,
        "arguments": templates.mask(arguments, version.sensitive),
        "arguments_digest": gate.arguments_digest,
        "digest": gate.digest,
        "preview_error": gate.preview_error,
        "preview": preview,
    }


def snapshot(
    gate: Gate, arguments: Any, version: ToolVersion, previous: Sequence[PreviousStep]
) -> dict[str, Any]:
    """Return what a person is shown of a gate, as it is kept with who was shown it.

    ``previous`` are the steps before it as they are now, for a gate that does not keep them.
    """
    return {
        "pattern": gate.pattern,
        "risk": gate.risk,
        "effect": gate.effect,
        "ceremony": gate.ceremony,
        "what": what(gate, arguments, version),
        "why": _why(gate, previous),
        "what_could_go_wrong": gate.what_could_go_wrong,
        "triggers": gate.triggers,
        "policy_version": gate.policy_version,
        "required_confirmation": gate.required_confirmation,
        "expires_at": instant(gate.expires_at),
    }


def _why(gate: Gate, previous: Sequence[PreviousStep]) -> dict[str, Any]:
    """Return it as it is shown: with what was not yet told when older gates opened."""
    told = {"started_by": [], "dry_run": None, **gate.why}
    if (said := told["dry_run"]) is not None:
        told["dry_run"] = {**said, "differs_in": differs_in(said, gate.preview)}
    if not gate.keeps_previous:
        told["previous_steps"] = [one.shown for one in previous]
    return told


def instant(moment: datetime | None) -> str | None:
    """Write a time as RFC 3339 in UTC."""
    if moment is None:
        return None
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
