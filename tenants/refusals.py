"""Refusals that a log keeps: who asked for what is not theirs to ask for, and what it was."""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from django.http import HttpRequest

from config.errors import Problem
from tenants.principal import Principal

logger = logging.getLogger(__name__)
_BY_RIGHT: Final = frozenset({403, 404})
_LONGEST_PATH: Final = 300


def tell(
    principal: Principal, request: HttpRequest, problem: Problem, about: UUID | None = None
) -> None:
    """Leave a line where a known caller is refused by right, or names what was not approved.

    What a refusal rolled back takes no line with it. Ids, the path and the code stand there, and
    nothing of the body; a fault of form, or of time, leaves none. ``about`` is one of several
    that were named in the body.
    """
    if problem.status in _BY_RIGHT or problem.is_of_binding:
        # A path may hold whatever was sent, a line break too.
        asked = f"{request.method} {request.path[:_LONGEST_PATH]!a}"
        logger.warning(
            "refused %s of tenant %s: %s%s: %s",
            principal.actor,
            principal.tenant_id,
            asked,
            f" of {about}" if about else "",
            problem.code,
        )
