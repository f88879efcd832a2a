"""What a person does about a rule by its page: each a plain POST, then the page again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from approvals.views.answers import refuse_unstorable
from config.errors import InvalidBody, NotFound, Problem
from delegation.models import Delegation
from delegation.services import rules
from delegation.views import forms
from delegation.views.rules import WORDS, rule_page, rules_page
from tenants.principal import Principal
from tenants.views.page import PageView, Words, see_other
from tenants.views.visits import Visit

Sent = Mapping[str, str]
Act = Callable[[Principal, Delegation, Sent], Delegation]


def _accept(who: Principal, rule: Delegation, sent: Sent) -> Delegation:
    limits = forms.limits_said(rule, sent)
    return rules.accept(who, rule.pk, limits=limits or None, version=_version(sent))


def _tighten(who: Principal, rule: Delegation, sent: Sent) -> Delegation:
    # Read against the very version that the form was made of: the service refuses another.
    change = forms.change_said(rule, sent)
    return rules.tighten(who, rule.pk, change, version=_version(sent))


def _pause(who: Principal, rule: Delegation, sent: Sent) -> Delegation:
    note = sent.get("note", "").strip()
    if len(note) > rules.MAX_NOTE:
        raise InvalidBody.at("/note", f"Must have {rules.MAX_NOTE:,} characters at most.")
    return rules.pause(who, rule.pk, note)


def _revoke(who: Principal, rule: Delegation, _sent: Sent) -> Delegation:
    return rules.revoke(who, rule.pk)


def _dismiss(who: Principal, rule: Delegation, _sent: Sent) -> Delegation:
    return rules.dismiss(who, rule.pk)


ACTS: Final[Mapping[str, Act]] = {
    "accept": _accept,
    "tighten": _tighten,
    "pause": _pause,
    "revoke": _revoke,
    "dismiss": _dismiss,
}


class ActView(PageView):
    """One act on one rule: done, and on to the page of all; or the rule with what stands against."""

    nav: ClassVar[str] = "delegation"
    words: ClassVar[Mapping[str, Words]] = WORDS

    def get(self, _visit: Visit, pk: UUID, act: str) -> HttpResponse:
        if act not in ACTS:
            raise NotFound
        return see_other(reverse("rule", args=[pk]))

    def post(self, visit: Visit, pk: UUID, act: str) -> HttpResponse:
        if act not in ACTS:
            raise NotFound
        sent = visit.request.POST.dict()
        refuse_unstorable(sent)
        rule = ACTS[act](visit.principal, Delegation.objects.get(pk=pk), sent)
        own = rule.user_id == visit.principal.id
        back = reverse("delegation") if own else reverse("rule", args=[pk])
        return see_other(f"{back}?done={act}")

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        try:
            return rule_page(self, visit, kwargs["pk"], problem)
        except Problem as other:
            return super().refused(visit, other, **kwargs)


class AskEverythingView(PageView):
    """Has every rule of the person's sleep, or wakes them."""

    nav: ClassVar[str] = "delegation"

    def get(self, _visit: Visit) -> HttpResponse:
        return see_other(reverse("delegation"))

    def post(self, visit: Visit) -> HttpResponse:
        wanted = visit.request.POST.get("wanted") != "no"
        rules.ask_everything(visit.principal, wanted=wanted)
        return see_other(f"{reverse('delegation')}?done={'asking' if wanted else 'waking'}")

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return rules_page(self, visit, problem)


def _version(sent: Sent) -> int:
    """Return the version of the rule that the form was made of. Raises InvalidBody."""
    text = sent.get("version", "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidBody.at("/version", "Must be the version that was shown.")
    return int(text)
