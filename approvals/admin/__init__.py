"""Members and what they may decide, and policies; gates and decisions, to be read."""

from approvals.admin import gates, members, policies
from approvals.services.inboxes import refresh_inboxes
from tenants.admin.site import site

site.after_each_change(refresh_inboxes)

__all__ = ["gates", "members", "policies"]
