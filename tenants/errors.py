"""What this app refuses, beside the ground rules' codes (config/errors.py)."""

from config.errors import Forbidden, Problem


class InvalidQuery(Problem):
    """A parameter in the query is not what this path takes."""

    code = "invalid-query"
    status = 422


class InvalidHeader(Problem):
    """A header of the request is not what the service takes."""

    code = "invalid-header"
    status = 422


class WrongCredentials(Problem):
    """No person signs in with that name and password."""

    code = "wrong-credentials"
    status = 422


class FreshSignInRequired(Problem):
    """What can't be undone is approved by who gave their password a short while ago."""

    code = "fresh-sign-in-required"
    status = 403


class OwnAuthority(Forbidden):
    """Nobody gives authority to themselves."""

    code = "own-authority"


class InvalidSecret(Problem):
    """The name or the value can be no secret's; neither is stored."""

    code = "invalid-secret"
    status = 422
