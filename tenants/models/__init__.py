"""Who there is: people, tenants and the machines that act for them; and what every tenant keeps."""

from tenants.models.base import TenantOwned, TenantQuerySet
from tenants.models.delivery import IdempotentAnswer, OutboxMessage
from tenants.models.journal import JournalEntry
from tenants.models.machines import Agent, AgentKey, UserToken, identity_of
from tenants.models.people import Group, GroupMember, Membership, Role, Theme, User
from tenants.models.secrets import Secret
from tenants.models.signing_in import SignInCount
from tenants.models.tenant import Tenant

__all__ = [
    "Agent",
    "AgentKey",
    "Group",
    "GroupMember",
    "IdempotentAnswer",
    "JournalEntry",
    "Membership",
    "OutboxMessage",
    "Role",
    "Secret",
    "SignInCount",
    "Tenant",
    "TenantOwned",
    "TenantQuerySet",
    "Theme",
    "User",
    "UserToken",
    "identity_of",
]
