"""If-Match: a change is made only to the version its caller saw."""

from dataclasses import dataclass

from config.errors import VersionMismatch


@dataclass(frozen=True, slots=True)
class IfMatch:
    """The versions a caller would change; checked under the lock of what they are versions of."""

    versions: frozenset[str]
    any: bool = False

    def check(self, current: int) -> None:
        """Refuse with VersionMismatch unless ``current`` is among the versions named."""
        if not self.any and str(current) not in self.versions:
            raise VersionMismatch(f"The current version is {current}.")


ANY_VERSION = IfMatch(frozenset(), any=True)
