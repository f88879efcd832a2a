"""Marks of risk and state, icons, times, and text of others made visible: `{% load pages %}`."""

from __future__ import annotations

from datetime import datetime, timedelta
from html import unescape
from typing import Any, Final

from django import template
from django.template.defaultfilters import date as formatted
from django.utils import timezone
from django.utils.html import format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe

from approvals import waiting
from config import visible as visibility
from tenants.views.visits import Visit

register = template.Library()

# Inside of a 24 by 24 drawing, stroked with the text's colour.
ICONS: Final = {
    "mark": '<path d="M4 12h6M14 12h6"/><rect x="9" y="4" width="6" height="16" rx="2"/>',
    "inbox": '<path d="M3 13l3-8h12l3 8v6H3z"/><path d="M3 13h5l1.5 3h5L16 13h5"/>',
    "runs": '<path d="M4 6h10M4 12h16M4 18h7"/><circle cx="18" cy="6" r="2"/>'
    '<circle cx="15" cy="18" r="2"/>',
    "key": '<circle cx="8" cy="15" r="4"/><path d="M11 12l9-9M16 7l3 3"/>',
    "chart": '<path d="M4 20V10M10 20V4M16 20v-7M21 20H3"/>',
    "stop": '<path d="M8 3h8l5 5v8l-5 5H8l-5-5V8z"/><path d="M9 9h6v6H9z" fill="currentColor"/>',
    "circle": '<circle cx="12" cy="12" r="8"/>',
    "diamond": '<path d="M12 3l9 9-9 9-9-9z"/><path d="M12 9v6"/>',
    "tri": '<path d="M12 3.5L22 20H2z"/><path d="M12 10v4M12 17v.01"/>',
    "oct": '<path d="M8 3h8l5 5v8l-5 5H8l-5-5V8z"/><path d="M8.5 12h7"/>',
    "safe": '<path d="M12 3l8 3v6c0 5-3.5 7.5-8 9-4.5-1.5-8-4-8-9V6z"/><path d="M10 9v6M14 9v6"/>',
    "partial": '<circle cx="12" cy="12" r="9"/><path d="M12 3a9 9 0 010 18z" fill="currentColor"/>',
    "cancelling": '<path d="M12 3a9 9 0 109 9" stroke-dasharray="4 3"/>'
    '<path d="M9.5 9.5l5 5M14.5 9.5l-5 5"/>',
    "unknown": '<path d="M12 2.5l8.5 4.75v9.5L12 21.5l-8.5-4.75v-9.5z"/>'
    '<path d="M9.5 9.5a2.5 2.5 0 114 2c-1 .7-1.5 1.2-1.5 2.2M12 16.8v.01"/>',
    "check": '<path d="M5 12.5l4.5 4.5L19 7"/>',
    "x": '<path d="M6 6l12 12M18 6L6 18"/>',
    "play": '<path d="M7 5l11 7-11 7z"/>',
    "clock": '<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3.5 2"/>',
    "undo": '<path d="M8 5L4 9l4 4"/><path d="M4 9h10a6 6 0 010 12h-3"/>',
    "noundo": '<path d="M8 5L4 9l4 4M4 9h10a6 6 0 014 10.5M3 21L21 3"/>',
    "reach": '<circle cx="12" cy="12" r="3"/><circle cx="12" cy="12" r="9"/>',
    "eye": '<path d="M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12z"/>'
    '<circle cx="12" cy="12" r="3"/>',
    "quote": '<path d="M5 17V9l3-4M14 17V9l3-4M5 17h4v-5H5zM14 17h4v-5h-4z"/>',
    "search": '<circle cx="11" cy="11" r="7"/><path d="M16 16l5 5"/>',
    "filter": '<path d="M3 5h18l-7 8v6l-4 2v-8z"/>',
    "user": '<circle cx="12" cy="8" r="4"/><path d="M4 21a8 8 0 0116 0"/>',
    "gate": '<path d="M4 21V5M20 21V5M4 9h16M4 15h16"/>',
    "branch": '<circle cx="6" cy="5" r="2"/><circle cx="6" cy="19" r="2"/>'
    '<circle cx="18" cy="9" r="2"/><path d="M6 7v10M18 11c0 4-8 3-11 6"/>',
    "pen": '<path d="M4 20l1-4L16 5l3 3L8 19z"/>',
    "lock": '<rect x="5" y="11" width="14" height="9" rx="2"/><path d="M8 11V8a4 4 0 018 0v3"/>',
    "bolt": '<path d="M13 2L5 14h6l-1 8 8-12h-6z"/>',
    "dash": '<path d="M6 12h12"/>',
    "mail": '<rect x="3" y="5" width="18" height="14" rx="2"/><path d="M3 7l9 6 9-6"/>',
    "door": '<path d="M10 4H5v16h5M14 8l4 4-4 4M9 12h9"/>',
}
# Risk as people are shown it: an irreversible effect is a level of its own, above high.
RISKS: Final = {
    "low": ("circle", "Low"),
    "medium": ("diamond", "Medium"),
    "high": ("tri", "High"),
    "irreversible": ("oct", "Irreversible"),
}
# By run status and suspension: the class and icon, and the words.
STATES: Final = {
    "safely_suspended": ("safe", "safe", "Safely suspended"),
    "partially_complete": ("partial", "partial", "Partially complete"),
    "still_cancelling": ("cancelling", "cancelling", "Still cancelling"),
    "unknown_outcome": ("unknown", "unknown", "Unknown outcome"),
    "running": ("running", "play", "Running"),
    "suspended": ("safe", "safe", "Suspended"),
    "cancelling": ("cancelling", "cancelling", "Still cancelling"),
    "completed": ("done", "check", "Finished"),
    "failed": ("stopped", "x", "Failed"),
    "cancelled": ("stopped", "stop", "Stopped"),
}
# The sentence that each suspension state begins with.
SENTENCES: Final = {
    "safely_suspended": "Nothing is running. Nothing is unclear.",
    "partially_complete": "Some effects happened, some did not.",
    "still_cancelling": "Work is in flight right now.",
    "unknown_outcome": "We can\u2019t tell if an effect happened.",
}
VERDICTS: Final = {
    "approve": "Approved",
    "reject": "Rejected",
    "request_changes": "Asked for changes",
    "respond": "Answered in its place",
}
GATES: Final = {
    "preparing": "being prepared",
    "pending": "waiting for an answer",
    "approved": "approved",
    "rejected": "rejected",
    "changes_requested": "sent back for changes",
    "responded": "answered by a person",
    "expired": "expired",
    "withdrawn": "withdrawn",
    "superseded": "replaced by a newer request",
}
STEPS: Final = {
    "proposed": "proposed",
    "waiting": "waiting",
    "ready": "about to run",
    "executing": "running",
    "unknown": "outcome unknown",
    "succeeded": "done",
    "failed": "failed",
    "compensating": "being undone",
    "compensated": "undone",
    "denied": "denied by policy",
    "rejected": "rejected",
    "revised": "withdrawn for another way",
    "cancelled": "cancelled",
}
LONGEST_HEADLINE: Final = 80
_UNSEEN: Final = mark_safe(' class="vh"')
_DAY: Final = timedelta(days=1)
_HOUR: Final = timedelta(hours=1)

register.filter("visible", visibility.visible)


@register.filter
def spelt(text: object) -> str:
    """Return a text with labels for what it hides, where no markup can be: in a page's title."""
    return unescape(strip_tags(visibility.visible(text)))


@register.filter
def headline(text: str) -> SafeString:
    """Return a headline, the one text that is cut: the whole of it stands among the facts."""
    cut = text if len(text) <= LONGEST_HEADLINE else f"{text[: LONGEST_HEADLINE - 1].rstrip()}…"
    return visibility.visible(cut)


@register.filter
def verdict_words(decision: Any) -> str:
    """Say what a person said, and that they changed the arguments where they did."""
    words = VERDICTS[decision.verdict]
    return f"{words} with edits" if decision.edits is not None else words


@register.filter
def gate_words(state: str) -> str:
    return GATES[state]


@register.filter
def step_words(status: str) -> str:
    return STEPS[status]


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Draw an icon; it says nothing to those who do not see it."""
    drawn = mark_safe(ICONS[name])  # noqa: S308 - drawings of ours
    return format_html(
        '<svg class="{}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">{}</svg>',
        f"i {extra}".strip(),
        drawn,
    )


def risk_shown(risk: str, effect: str) -> str:
    """Return the level that people are shown for a call of this risk and effect."""
    return "irreversible" if effect == "irreversible" else risk


@register.simple_tag
def risk(level: str, effect: str = "", *, long: bool = False) -> SafeString:
    """Mark a risk by shape, word and weight; with ``long`` the word "risk" is seen too."""
    shown = risk_shown(level, effect)
    drawing, word = RISKS[shown]
    tail = format_html("<span{}> risk</span>", "" if long else _UNSEEN)
    return format_html(
        '<span class="risk risk-{}">{}<span>{}{}</span></span>',
        shown,
        icon(drawing),
        word,
        "" if shown == "irreversible" else tail,
    )


@register.simple_tag
def state(name: str, text: str = "") -> SafeString:
    """Mark the state of a run: its suspension where it has one, else its status."""
    css, drawing, words = STATES[name]
    drawn = icon(drawing, "spin" if css == "cancelling" else "")
    return format_html('<span class="st st-{}">{}{}</span>', css, drawn, text or words)


@register.simple_tag
def state_of(run: Any, text: str = "") -> SafeString:
    return state(run.suspension or run.status, text)


@register.filter
def state_css(name: str) -> str:
    """Return what the class of the state's band ends with: `band-{{ run.suspension|state_css }}`."""
    return STATES[name][0]


@register.filter
def state_icon(name: str) -> str:
    return STATES[name][1]


@register.filter
def state_words(name: str) -> str:
    return STATES[name][2]


@register.filter
def state_sentence(name: str) -> str:
    return SENTENCES.get(name, "")


@register.simple_tag
def kbd(key: str) -> SafeString:
    return format_html("<kbd>{}</kbd>", key)


@register.filter
def due(moment: datetime) -> SafeString:
    """Say when something is due: in how long under a day, else day and clock."""
    left = moment - _now()
    if left <= timedelta():
        return _time(moment, "now")
    if left < _DAY:
        return _time(moment, f"in {_length(left)}")
    return _time(moment, f"{_day(moment)}, {_clock(moment)}")


@register.filter
def is_soon(moment: datetime | None) -> bool:
    return moment is not None and moment - _now() < _HOUR


@register.filter
def age(moment: datetime) -> SafeString:
    """Say for how long something has been so."""
    return _time(moment, _length(max(_now() - moment, timedelta())))


@register.filter
def clock(moment: datetime) -> SafeString:
    """Show a moment to the second, with its day where it is another than today."""
    local = timezone.localtime(moment)
    text = formatted(local, "H:i:s")
    if local.date() != timezone.localdate():
        text = f"{_day(moment)}, {text}"
    return _time(moment, text)


@register.filter
def until(moment: datetime) -> SafeString:
    """Show a moment to the minute, with its day where it is another than today."""
    local = timezone.localtime(moment)
    today = local.date() == timezone.localdate()
    return _time(moment, _clock(moment) if today else f"{_day(moment)}, {_clock(moment)}")


def _now() -> datetime:
    """Return the moment that the page is made; what it says of time is as of then."""
    return timezone.now()  # noqa: TID251 - shown, not decided by


def _time(moment: datetime, text: str) -> SafeString:
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), text)


@register.filter
def seconds(number: float) -> str:
    """Show a length of time in the unit it is read in: ``90`` is ``1 min``."""
    return _length(timedelta(seconds=number))


def _length(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes} min"
    if hours < 10 and minutes % 60:
        return f"{hours} h {minutes % 60} min"
    if days < 1:
        return f"{hours} h"
    return "1 day" if days == 1 else f"{days} days"


def _day(moment: datetime) -> str:
    local = timezone.localtime(moment)
    ahead = (local.date() - timezone.localdate()).days
    if ahead == 1:
        return "tomorrow"
    if ahead == -1:
        return "yesterday"
    form = "j M" if local.year == timezone.localdate().year else "j M Y"
    return str(formatted(local, form))


def _clock(moment: datetime) -> str:
    return str(formatted(timezone.localtime(moment), "H:i"))


@register.filter
def short_digest(digest: str) -> str:
    """Return the first characters of a digest, in two groups: enough to compare by eye."""
    hexed = digest.removeprefix("sha256:")
    return f"{hexed[:4]} {hexed[4:8]}"


@register.filter
def short_id(pk: Any) -> str:
    """Return the last characters of an id: its first ones are its time and alike."""
    return str(pk)[-8:]


@register.filter
def initials(name: str) -> str:
    """Return up to two letters of a name, and nothing of it that is no letter or digit."""
    words = "".join(char if char.isalnum() else " " for char in name).split()
    return "".join(word[0] for word in words[:2]).upper()


@register.filter
def full_name(user: Any) -> str:
    return str(user.get_full_name() or user.username)


@register.simple_tag
def waiting_count(visit: Visit) -> str:
    """Return how many decisions wait for the person, capped."""
    return waiting.count(visit.principal.id)
