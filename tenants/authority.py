"""The tenant's authority version, and the drain that makes a withdrawal final.

Whatever narrows what may happen (a policy, a permission, a membership or key withdrawn, a tool
changed, a freeze) raises the version in its own transaction. Every intent holds the tenant's drain
lock shared before it reads the version, so that once the exclusive lock was had after the commit,
no transaction that saw the older version is open: after the withdrawal has answered, nothing
starts under it.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection, transaction

from tenants.scope import current_tenant_id

# The first half of the advisory lock's key; the second is the tenant's hash. Two tenants of one
# hash wait for each other now and then, and nothing else.
DRAIN = 7341


def raise_authority() -> int:
    """Make every older authorization of the tenant stale; drained when the transaction commits.

    Returns the new version. Takes the tenant row's lock till the commit.
    """
    tenant = current_tenant_id()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenants_tenant SET authority_version = authority_version + 1"
            " WHERE id = %s RETURNING authority_version",
            [tenant],
        )
        (version,) = cursor.fetchone()
    transaction.on_commit(lambda: drain(tenant))
    return int(version)


def drain(tenant: UUID) -> None:
    """Wait until no transaction that may have seen an older authority version is open."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s::text))", [DRAIN, str(tenant)])


def hold_authority() -> None:
    """Hold the drain lock shared till the transaction ends: what is read now stays current."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s::text))",
            [DRAIN, str(current_tenant_id())],
        )
