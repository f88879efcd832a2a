"""What admins see to: `{% load notices %}`."""

from __future__ import annotations

from django import template

from approvals.services import inboxes
from tenants.models import Role
from tenants.views.visits import Visit

register = template.Library()


@register.simple_tag
def undecidable_count(visit: Visit) -> int:
    """Return how many open gates nobody may decide, up to a bound; 0 for all but admins."""
    return len(inboxes.undecidable()) if visit.role == Role.ADMIN else 0
