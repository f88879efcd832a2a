"""A group as the tenant file has it: a list of members, or an object that says more of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Group = Sequence[str] | Mapping[str, Any]


def members_of(group: Group) -> Sequence[str]:
    """Return the usernames of who is in a group."""
    return group["members"] if isinstance(group, Mapping) else group


def given_to(group: Group) -> Sequence[Any]:
    """Return what its members may decide by being in it, as entries."""
    return group.get("may_decide", ()) if isinstance(group, Mapping) else ()
