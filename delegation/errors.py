"""What delegation refuses, by the codes of the API."""

from __future__ import annotations

from config.errors import DomainError


class NotNarrower(DomainError):
    """A rule is only ever made narrower."""

    code, status = "not-narrower", 422


class RuleChanged(DomainError):
    """The rule is not as it was shown: there is a newer version of it."""

    code = "rule-changed"


class AlreadyRevoked(DomainError):
    """The rule has ended, and speaks for nobody any more."""

    code = "already-revoked"


class NotSuggested(DomainError):
    """Only a suggestion is dismissed."""

    code = "not-suggested"


class NotDelegable(DomainError):
    """Calls of this tool are never decided by a rule."""

    code, status = "not-delegable", 422


class TooManyRules(DomainError):
    """There are as many rules of the tool as a person may have, or as many templates."""

    code, status = "too-many-rules", 422
