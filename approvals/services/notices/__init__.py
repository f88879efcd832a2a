"""What people are told by e-mail of what they decide or settle, and what they want to be told.

A mail holds what the service says of a call and nothing that an agent or anybody outside wrote. Its
link needs a session, shows, and decides nothing.
"""

from approvals.services.notices.mails import compose
from approvals.services.notices.wishes import Wishes, set_wishes, wishes_of

__all__ = ["Wishes", "compose", "set_wishes", "wishes_of"]
