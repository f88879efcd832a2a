"""Credentials: 256 random bits each, shown once, kept as a hash, revoked and never deleted."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db.models.functions import Now

from config.keys import secret_hash
from tenants.models import Agent, AgentKey, Membership, UserToken
from tenants.principal import AGENT_PREFIX, USER_PREFIX

_HINT = 16
# A password of ours has 128 random bits, which no hash needs to stretch; at the first login Django
# hashes it anew at its usual cost. A person's own choice never comes this way.
_ITERATIONS = 1000


def new_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


def new_password() -> tuple[str, str]:
    """Return a random password and its hash as Django keeps it."""
    password = secrets.token_urlsafe(16)
    hasher = PBKDF2PasswordHasher()
    return password, hasher.encode(password, hasher.salt(), iterations=_ITERATIONS)


def issue_tokens(memberships: Iterable[Membership]) -> dict[str, str]:
    """Make a token for each member; return them by username."""
    made = {membership: new_secret(USER_PREFIX) for membership in memberships}
    UserToken.objects.bulk_create(
        UserToken(membership=membership, hash=secret_hash(secret), hint=secret[:_HINT])
        for membership, secret in made.items()
    )
    return {membership.user.username: secret for membership, secret in made.items()}


def issue_keys(agents: Iterable[Agent]) -> dict[str, str]:
    """Make a key for each agent; return them by the agent's name."""
    made = {agent: new_secret(AGENT_PREFIX) for agent in agents}
    AgentKey.objects.bulk_create(
        AgentKey(agent=agent, hash=secret_hash(secret), hint=secret[:_HINT])
        for agent, secret in made.items()
    )
    return {agent.name: secret for agent, secret in made.items()}


def revoke_tokens(memberships: Iterable[Membership]) -> None:
    """Revoke what tokens these members have; the caller makes their authority stale."""
    live = UserToken.objects.filter(membership__in=list(memberships), revoked_at=None)
    live.update(revoked_at=Now())


def revoke_keys(agents: Iterable[Agent]) -> None:
    """Revoke what keys these agents have; the caller makes their authority stale."""
    AgentKey.objects.filter(agent__in=list(agents), revoked_at=None).update(revoked_at=Now())
