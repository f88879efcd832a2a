"""Columns as they are shown: every text of others with what it hides, and none of it shortened."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.html import format_html
from django.utils.safestring import SafeString

from config.visible import visible

Shown = Callable[[Any], str]
_TEXTS = (models.CharField, models.TextField, models.JSONField)


def shown(model: Any, name: str) -> str | Shown:
    """Return what shows a model's column of texts; the name itself where it holds none that is free."""
    return _shown(model._meta.label, name)  # noqa: SLF001 - Django documents it


@lru_cache(maxsize=1024)
def _shown(label: str, name: str) -> str | Shown:
    model = apps.get_model(label)
    try:
        field = model._meta.get_field(name)  # noqa: SLF001 - Django documents it
    except FieldDoesNotExist:
        return name
    if not isinstance(field, _TEXTS) or field.choices or field.primary_key:
        return name

    def show(row: Any) -> str:
        return _text(getattr(row, name))

    show.__name__ = name
    show.short_description = str(field.verbose_name)  # type: ignore[attr-defined]
    show.admin_order_field = name  # type: ignore[attr-defined]
    return show


def _text(value: Any) -> str:
    if value in (None, ""):
        return "—"
    if isinstance(value, str):
        return visible(value)
    return _document(value)


def _document(value: Any) -> SafeString:
    text = visible(json.dumps(value, ensure_ascii=False, indent=2))
    return format_html('<pre class="aby-text">{}</pre>', text)
