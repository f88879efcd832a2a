"""The tenant's configuration in Django's admin, as services change it; one tenant at a time."""

from tenants.admin import agents, organisations, secrets

__all__ = ["agents", "organisations", "secrets"]
