"""What delegation refuses, by the codes of the API."""

from __future__ import annotations

from config.errors import DomainError


class NotNarrower(DomainError):
    """A rule is only ever made narrower."""

    code, status = "not-narrower", 422


class AlreadyRevoked(DomainError):
    """The rule was revoked, and speaks for nobody any more."""

    code = "already-revoked"


class NotSuggested(DomainError):
    """Only a suggestion is accepted or dismissed."""

    code = "not-suggested"


class NotDelegable(DomainError):
    """Calls of this tool are never decided by a rule."""

    code, status = "not-delegable", 422
