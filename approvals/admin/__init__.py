"""Members and groups, what they may decide and who stands in for them, and policies; gates, to be read."""

from approvals.admin import gates, groups, members, policies, substitutions
from approvals.services.inboxes import refresh_inboxes
from tenants.admin.site import site

site.after_each_change(refresh_inboxes)

__all__ = ["gates", "groups", "members", "policies", "substitutions"]
