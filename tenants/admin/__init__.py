"""The tenant's configuration in Django's admin, as services change it; one tenant at a time."""

from tenants.admin import agents, groups, organisations

__all__ = ["agents", "groups", "organisations"]
