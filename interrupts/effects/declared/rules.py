"""What the rules of a declaration may claim. Every fault is `(pointer, detail)`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from config.errors import pointer
from interrupts.effects.declared.outcomes import TIMEOUTS, Means, statuses_of
from interrupts.effects.declared.slots import names_the_call, place_fault

Fault = tuple[str, str]

MAX_RULES: Final = 50
MAX_PLACES: Final = 50
_ABOUT_ANOTHER: Final = (
    "Nothing says that the answer is about this call: {key} stands neither in the request nor in"
    " where."
)
_MEANS: Final[Mapping[str, tuple[Means, ...]]] = {
    "executor": (Means.PERFORMED, Means.FAILED, Means.NOT_PERFORMED, Means.UNKNOWN),
    "compensate": (Means.PERFORMED, Means.FAILED, Means.NOT_PERFORMED, Means.UNKNOWN),
    "reconcile": (Means.PERFORMED, Means.FAILED, Means.NOT_PERFORMED, Means.PENDING),
    "verifier": (Means.PASSED, Means.REJECTED, Means.UNKNOWN),
}


def rules_faults(part: str, rules: Any) -> Iterator[Fault]:
    if part not in _MEANS:
        yield "/outcomes", "No such member is declared here."
        return
    if not isinstance(rules, list) or not 0 < len(rules) <= MAX_RULES:
        yield "/outcomes", f"A list of 1 to {MAX_RULES} rules is expected."
        return
    for index, rule in enumerate(rules):
        for place, detail in _rule_faults(part, rule):
            yield pointer("outcomes", index) + place, detail


def _rule_faults(part: str, rule: Any) -> Iterator[Fault]:
    if not isinstance(rule, Mapping):
        yield "", "An object is expected: status, where, means."
        return
    for name in rule.keys() - {"status", "where", "means"}:
        yield pointer(name), "No such member is declared here."
    means = [one.value for one in _MEANS[part]]
    statuses, meant = statuses_of(rule.get("status")), rule.get("means")
    if statuses is None:
        yield "/status", 'A final status is expected: 404, "4xx" or "400-499".'
    if meant not in means:
        yield "/means", f"One of {', '.join(means)} is expected."
    yield from _where_faults(rule.get("where", {}))
    if statuses is not None and meant in means:
        claim = _CLAIMS.get(part, _sent_claim)
        if detail := claim(_Claim(Means(meant), *statuses, bool(rule.get("where")))):
            yield "/means", detail


def _where_faults(where: Any) -> Iterator[Fault]:
    if not isinstance(where, Mapping) or len(where) > MAX_PLACES:
        yield "/where", "An object is expected: JSON pointers, each with a list of values."
        return
    for place, values in where.items():
        if detail := place_fault(place):
            yield pointer("where", place), detail
        elif not isinstance(values, list) or not 0 < len(values) <= MAX_PLACES:
            yield pointer("where", place), "A list of the values that count is expected."
        elif any(isinstance(value, list | dict) and value for value in values):
            yield pointer("where", place), "A value is no list or object, or an empty one."


class _Claim(NamedTuple):
    means: Means
    low: int
    high: int
    has_where: bool

    @property
    def is_of_redirects(self) -> bool:
        return self.low < 400 and self.high >= 300

    @property
    def is_of_timeout(self) -> bool:
        return self.low == self.high and self.low in TIMEOUTS


def _sent_claim(claim: _Claim) -> str | None:
    """Refuse what an answer to a call can't prove, whoever says so.

    A proxy answers with a 5xx, a redirect or a timeout of its own while the far end may have acted;
    only words of the far end itself, in the body, tell them apart.
    """
    if claim.means is Means.UNKNOWN:
        return None
    if claim.is_of_redirects:
        return "A redirect is not followed and proves nothing: unknown."
    if claim.is_of_timeout:
        return "This status tells of a timeout, which proves nothing: unknown."
    done = claim.means is Means.PERFORMED
    if not claim.has_where and (claim.high >= 500 or (claim.low < 300) != done):
        return "This status proves that only by what its body says: add where."
    return None


def _asked_claim(claim: _Claim) -> str | None:
    """Refuse what an answer about a call can't prove: a wrong route and a proxy answer too."""
    if claim.means is Means.PENDING:
        return None
    if claim.high >= 500 or claim.is_of_redirects or claim.is_of_timeout:
        return "Who can't answer tells nothing: only 2xx and 4xx settle something."
    if not claim.has_where:
        return "A status alone may be a wrong route's or a proxy's: add where."
    return None


def _judged_claim(claim: _Claim) -> str | None:
    """Refuse what is no verdict: whoever stands before the verifier answers too.

    Only an answer that is the verifier's own lets a receipt pass. What rejects one asks people, as
    what says nothing does in the end.
    """
    if claim.means is Means.UNKNOWN:
        return None
    if claim.is_of_redirects or claim.is_of_timeout:
        return "A redirect and a timeout say nothing: unknown."
    if claim.means is Means.REJECTED:
        no_word = claim.high >= 500 and not claim.has_where
        return "This status rejects only by what its body says: add where." if no_word else None
    if claim.high >= 300:
        return "Only a 2xx passes."
    if not claim.has_where and (claim.low, claim.high) != (204, 204):
        return "A 2xx passes by what its body says: add where. A 204 has none, and needs none."
    return None


_CLAIMS: Final = {"reconcile": _asked_claim, "verifier": _judged_claim}


def question_faults(declared: Mapping[str, Any]) -> Iterator[Fault]:
    """The answer must be about this call: by its key in the request, or in what it says."""
    if names_the_call("reconcile", {"request": declared["request"]}):
        return
    for index, rule in enumerate(declared["outcomes"]):
        is_own = names_the_call("reconcile", {"outcomes": [rule]})
        if rule["means"] == Means.PERFORMED and not is_own:
            yield pointer("outcomes", index), _ABOUT_ANOTHER
