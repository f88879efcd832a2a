"""How the pages look and answer to a person, in every tenant."""

from __future__ import annotations

from uuid import UUID

from config.errors import InvalidBody, faults
from tenants.models import Theme, User
from tenants.zones import is_zone


def set_preferences(user_id: UUID, *, theme: str, time_zone: str, shortcuts: bool) -> None:
    """Keep what a person wants of the pages. Raises InvalidBody, and has then changed nothing."""
    wrong = []
    if theme not in Theme.values:
        wrong.append(("/theme", "Choose one of those listed."))
    if not is_zone(time_zone):
        wrong.append(("/time_zone", "No time zone has this name."))
    if wrong:
        raise InvalidBody(errors=faults(wrong))
    User.objects.filter(pk=user_id).update(theme=theme, time_zone=time_zone, shortcuts=shortcuts)
