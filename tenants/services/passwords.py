"""A person's own password."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction

from config.errors import InvalidBody, faults
from tenants.models import User
from tenants.services.signing_in import MAX_PASSWORD

SHORTEST: Final = 10  # characters


def change_password(user_id: UUID, *, old: str, new: str, again: str) -> User:
    """Change a person's password; their other sessions end by it. Raises InvalidBody."""
    with transaction.atomic():
        user: User = User.objects.select_for_update().get(pk=user_id)
        wrong = []
        if not user.check_password(old):
            wrong.append(("/old", "This is not your password."))
        if not SHORTEST <= len(new) <= MAX_PASSWORD:
            wrong.append(("/new", f"A password has at least {SHORTEST} characters."))
        elif new.casefold() in {user.username.casefold(), user.email.casefold(), old.casefold()}:
            wrong.append(("/new", "Choose one that is not your name, nor the old one."))
        if new != again:
            wrong.append(("/again", "This is not the same as above."))
        if wrong:
            raise InvalidBody(errors=faults(wrong))
        user.set_password(new)
        user.save(update_fields=["password"])
    return user
