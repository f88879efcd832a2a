"""Values as they are stored, each member in its place: `{% load facts %}`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from config.visible import hidden_characters, visible
from interrupts.templates import MASK

register = template.Library()

Path = tuple[str, ...]
_ABSENT: Final = object()


def members(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Go through a JSON value's leaves, in order, each with its path; an empty list is a leaf."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from members(below, (*path, str(key)))
    elif isinstance(value, list) and value:
        for index, below in enumerate(value):
            yield from members(below, (*path, str(index)))
    else:
        yield path, value


@register.filter
def typed(value: Any) -> SafeString:
    """Show a leaf with its type: text in quotes, everything else as JSON writes it."""
    if value == MASK:
        return format_html('<span class="masked">{} not shown</span>', MASK)
    if isinstance(value, str):
        return format_html("<bdi>\u201c{}\u201d</bdi>", visible(value))
    return visible(json.dumps(value, ensure_ascii=False))


@register.filter
def told(value: Any) -> SafeString:
    """Show a value of a preview: text as it is, nothing as "none", the rest as JSON writes it."""
    if value is None:
        return mark_safe('<span class="muted">none</span>')
    if isinstance(value, str):
        return format_html("<bdi>{}</bdi>", visible(value))
    return format_html("<bdi>{}</bdi>", visible(json.dumps(value, ensure_ascii=False)))


@register.simple_tag
def arguments(value: Any) -> SafeString:
    """List every member of a value with its path: no text of one can pass for another."""
    if value == {}:
        return mark_safe('<p class="pad-s muted">No arguments.</p>')
    rows = format_html_join(
        "",
        "<dt>{}</dt><dd>{}</dd>",
        ((path_shown(path), typed(leaf)) for path, leaf in members(value)),
    )
    return format_html('<dl class="args">{}</dl>', rows)


def path_shown(path: Path) -> SafeString:
    return format_html_join("", '<span class="k">{}</span>', ((visible(part),) for part in path))


@register.simple_tag
def hidden_in(value: Any) -> Sequence[tuple[SafeString, int]]:
    """Return where a value holds characters that do not show, and how many."""
    found = []
    for path, leaf in members(value):
        number = hidden_characters("".join(path))
        number += hidden_characters(leaf) if isinstance(leaf, str) else 0
        if number:
            found.append((path_shown(path), number))
    return found


@register.simple_tag
def differences(before: Any, after: Any) -> Sequence[tuple[SafeString, SafeString, SafeString]]:
    """Return the members that differ: path, as it was, as it is."""
    old, new = dict(members(before)), dict(members(after))
    return [
        (path_shown(path), _or_absent(old, path), _or_absent(new, path))
        for path in {**old, **new}
        if old.get(path, _ABSENT) != new.get(path, _ABSENT)
        or type(old.get(path)) is not type(new.get(path))
    ]


def _or_absent(known: Mapping[Path, Any], path: Path) -> SafeString:
    if path not in known:
        return mark_safe('<span class="muted">not given</span>')
    return typed(known[path])


@register.filter
def moment(text: str | None) -> datetime | None:
    """Read a time that a snapshot keeps."""
    return datetime.fromisoformat(text) if text else None
