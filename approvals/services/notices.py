"""What people are told by e-mail of decisions that wait, and what they want to be told.

A mail holds what the service says of a gate and nothing that an agent or anybody outside wrote. Its
link needs a session, shows, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import timezone

from approvals.deciders import ASKED, REMINDER, UNDECIDABLE
from approvals.models import OPEN_GATES, Assignment, Gate, NoticePreference
from interrupts.models import Effect
from tenants.models import Membership, OutboxMessage, Role, Tenant, User
from tenants.principal import Principal
from tenants.scope import current_tenant_id
from tenants.zones import zone

LONGEST_SUBJECT: Final = 160
_RISKS: Final = {"low": "Low risk", "medium": "Medium risk", "high": "High risk"}
_EXPIRIES: Final = {
    "reject": "it is rejected and the run goes on",
    "cancel": "the run is cancelled",
    "escalate": "others are asked",
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person wants to be told by e-mail in a tenant."""

    asked: bool = True
    reminders: bool = True


def wishes_of(user_id: UUID) -> Wishes:
    row = NoticePreference.objects.filter(user=user_id).first()
    return Wishes(row.asked, row.reminders) if row else Wishes()


def set_wishes(principal: Principal, wishes: Wishes) -> None:
    """Keep what the person wants to be told here; what they are owed already follows it too."""
    NoticePreference.objects.update_or_create(
        user_id=principal.id, defaults={"asked": wishes.asked, "reminders": wishes.reminders}
    )


def compose(kind: str, recipient: UUID, messages: Sequence[OutboxMessage]) -> EmailMessage | None:
    """Write the mail that tells a person of these gates; None where none of them is news any more."""
    user = _reader(kind, recipient)
    gates = _news(kind, recipient, messages) if user else []
    if user is None or not gates:
        return None
    tenant = Tenant.objects.get(pk=current_tenant_id())
    with timezone.override(zone(user.time_zone)):
        subject, lines = (
            _one(kind, gates[0], tenant) if len(gates) == 1 else _many(kind, gates, tenant)
        )
    lines += ["", "-- ", *_foot(gates), f"Times are in {user.time_zone}."]
    cut = subject if len(subject) <= LONGEST_SUBJECT else f"{subject[: LONGEST_SUBJECT - 1]}…"
    return EmailMessage(cut, "\n".join(lines), settings.DEFAULT_FROM_EMAIL, [user.email])


def _reader(kind: str, recipient: UUID) -> User | None:
    """Return the person where they are still to be told such things."""
    member = Membership.objects.filter(user=recipient, active=True, user__is_active=True)
    found = member.select_related("user").first()
    if found is None or not found.user.email:
        return None
    wishes = wishes_of(recipient)
    wanted = {
        ASKED: wishes.asked,
        REMINDER: wishes.reminders,
        UNDECIDABLE: found.role == Role.ADMIN,
    }
    return found.user if wanted.get(kind) else None


def _news(kind: str, recipient: UUID, messages: Sequence[OutboxMessage]) -> list[Gate]:
    """Return the gates that still wait: for the person, or for somebody who may decide them."""
    named = [one.about for one in messages if one.about is not None]
    rows = Gate.objects.filter(pk__in=named, state__in=sorted(OPEN_GATES))
    if kind == UNDECIDABLE:
        rows = rows.filter(undecidable_at__isnull=False)
    else:
        mine = Assignment.objects.filter(user=recipient, gate__in=named)
        rows = rows.filter(pk__in=mine.values_list("gate_id", flat=True))
    return list(rows.select_related("run__agent", "step").order_by("pk"))


# Words


def _one(kind: str, gate: Gate, tenant: Tenant) -> tuple[str, list[str]]:
    headline = _plain(gate.headline)
    start = {REMINDER: "Reminder: ", UNDECIDABLE: "Nobody may decide: "}.get(kind, "")
    due = f", due {_when(gate.expires_at)}" if gate.expires_at else ""
    risk = _risk(gate)
    said = {
        REMINDER: "Half of the time to decide this has passed, and it still waits.",
        UNDECIDABLE: "Nobody may decide this: who could asked for it, answers for its agent, or"
        " has left. Give somebody the authority, or cancel the run. As an admin you decide nothing"
        " by that alone.",
    }.get(kind, "A decision waits for you.")
    lines = [said, "", f"What: {headline}", *_facts(gate, tenant), ""]
    return f"{start}{risk}{due}: {headline}", [*lines, f"Open the decision: {link_to(gate)}"]


def _facts(gate: Gate, tenant: Tenant) -> list[str]:
    facts = [
        f"Risk: {_risk(gate)}",
        f"Agent: {_plain(gate.run.agent.name)}",
        f"Tool: {_plain(gate.step.tool_name)}",
        f"Tenant: {_plain(tenant.name)}",
        f"Undo: {_undo(gate)}",
        f"Asked because: rule \u201c{_plain(gate.rule)}\u201d",
    ]
    if gate.expires_at:
        then = _EXPIRIES.get(gate.on_expiry or "reject", "")
        facts.append(f"No answer by {_when(gate.expires_at)}: {then}")
    return facts


def _many(kind: str, gates: Sequence[Gate], tenant: Tenant) -> tuple[str, list[str]]:
    verb = {REMINDER: "still wait for you", UNDECIDABLE: "can be decided by nobody"}
    what = verb.get(kind, "wait for you")
    subject = f"{len(gates)} decisions {what}: {_plain(tenant.name)}"
    lines = [f"{len(gates)} decisions {what}.", ""]
    for gate in gates:
        due = f", due {_when(gate.expires_at)}" if gate.expires_at else ""
        lines += [f"{_risk(gate)}{due}: {_plain(gate.headline)}", f"  {link_to(gate)}"]
    page = "undecidable" if kind == UNDECIDABLE else "inbox"
    return subject, [*lines, "", f"All of them: {_url(reverse(page))}"]


def _foot(gates: Sequence[Gate]) -> list[str]:
    about = [f"Decision {gates[0].pk}, digest {gates[0].digest[7:15]}."] if len(gates) == 1 else []
    return [
        *about,
        "A link here signs nobody in and approves nothing.",
        f"What you are told by e-mail: {_url(reverse('notices'))}",
    ]


def link_to(gate: Gate) -> str:
    return _url(reverse("decision", args=[gate.pk]))


def _url(path: str) -> str:
    return f"{settings.ABEYANCE_BASE_URL.rstrip('/')}{path}"


def _risk(gate: Gate) -> str:
    return "Irreversible" if gate.effect == Effect.IRREVERSIBLE else _RISKS[gate.risk]


def _undo(gate: Gate) -> str:
    if gate.effect == Effect.IRREVERSIBLE:
        return "it can't be undone"
    return "it can be undone" if gate.effect == Effect.REVERSIBLE else "its tool has no undo"


def _when(moment: datetime) -> str:
    local = timezone.localtime(moment)
    today = local.date() == timezone.localdate()
    return local.strftime("%H:%M" if today else "%d %b, %H:%M")


def _plain(text: str) -> str:
    """Return one line in which no mail program finds an address to make a link of."""
    return " ".join(text.split()).replace("://", ": //").replace("www.", "www .")
