import select

from django.db.backends.postgresql import base
from psycopg import Connection


class DatabaseWrapper(base.DatabaseWrapper):
    """Notices a kept connection that the server has ended before it is used again."""

    def is_usable(self) -> bool:
        """Return whether the connection works, asking the server only where there is a doubt.

        An idle server says nothing; what can be read is its farewell or a notice, so then it is
        asked. With CONN_HEALTH_CHECKS Django calls this once a request.
        """
        if not self.errors_occurred and _is_silent(self.connection):
            return True
        return bool(super().is_usable())


def _is_silent(connection: Connection) -> bool:
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)
