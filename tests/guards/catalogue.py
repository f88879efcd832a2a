"""The guards, each with the promise of the domain's "What must always hold" that it keeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.guards.removal import (
    Guard,
    always,
    both,
    drop_constraint,
    drop_index,
    drop_trigger,
    nothing,
    patch,
    rewrite,
    statements,
)

ENGINE = "tests/interrupts"
RACES = "tests/races"
FAULTS = "tests/faults"
ROWS = "tests/promises/test_rows.py"
GATES = "tests/promises/test_gates.py"
VERDICTS = f"{ENGINE}/test_verdicts.py"
LIMITS = "tests/approvals/test_limits.py"
GROUPS = "tests/approvals/test_group_authority.py"
SUBSTITUTIONS = "tests/approvals/test_substitutions.py"
DRY_RUNS = "tests/approvals/test_dry_runs.py"
PREVIEWS = "tests/approvals/test_previews.py"
CHECKS = f"{ENGINE}/effects/test_verifiers.py"
OF_SUBSTITUTES = "tests/approvals/test_notices_of_substitutes.py"
OF_INTERRUPTS = "tests/approvals/test_told_of_interrupts.py"
BULK = "tests/approvals/test_bulk.py"
EXTENSIONS = "tests/approvals/test_extensions.py"
STAGE_ENDS = "tests/approvals/test_stage_ends.py"
SIMULATION = "tests/approvals/test_simulation.py"
ESCALATION = "tests/approvals/test_escalation.py"
LEARNED = "tests/delegation"
TAMPERING = "tests/approvals/test_tampering.py"
AUTOMATIC = "tests/delegation/test_automatic.py"
ACTS = "tests/delegation/test_acts.py"
LEARNING = "tests/delegation/test_learning.py"
EVENTS = "tests/delegation/test_events.py"
RULES_API = "tests/delegation/test_api.py"
SPOT_CHECKS = f"{LEARNED}/test_spot_checks.py"
DRAIN = "PERFORM pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));"
HISTORIES = "tests/property/test_histories_1.py::test_what_must_always_hold_holds_after_every_step_of_any_history"
READ_EARLY = "SELECT t.authority_version INTO v_seq FROM tenants_tenant t WHERE t.id = p_tenant;"
AUTHORITY = "s.authorized_under IS DISTINCT FROM authority"


def _touching(look: Any) -> Any:
    """A look that leaves a trace: what a GET must never do."""
    from interrupts.models import Run

    def look_and_touch(principal: Any, run: Run) -> Run:
        Run.objects.filter(pk=run.pk).update(goal=f"{run.goal}.")
        return look(principal, run)

    return look_and_touch


def _no_votes(_: Any) -> Any:
    """Whoever approved in an earlier stage, as if nobody had."""
    from approvals.models import Decision

    return lambda _user: Decision.objects.none()


def _of_anybody(_: Any) -> Any:
    """The rules of everybody that cover a call, for whoever's inbox it would be."""
    from delegation import authorizer

    return lambda work, looked: authorizer.Drawn(
        [
            rule
            for speaker in authorizer._speakers(work, looked)
            for rule in speaker.rules
            if authorizer._covers(rule, looked)
        ]
    )


def _one_identity(_: Any) -> Any:
    """Which agent it is, as if a name said it."""
    return lambda *_: UUID(int=0)


def _unlocked_day(delegation_id: Any, day: Any) -> Any:
    """A rule's day, read by whoever asks, whoever else counts in it."""
    from delegation.models import DelegationDay

    return DelegationDay.objects.get_or_create(delegation_id=delegation_id, day=day)[0]


def _anybodys(_: Any) -> Any:
    """A rule, locked for whoever asks."""
    from delegation.locks import lock_rule

    return lambda _principal, delegation_id, **_more: lock_rule(delegation_id)


def _as_if_read(read: Any) -> Any:
    """A reader that takes a body it could not read for an empty one."""
    return lambda answer, scrubber: read(answer, scrubber)._replace(fault=None)


def _whenever(asked: str) -> str:
    """The authority function as if a substitution knew no time."""
    before, after = "stands.starts_at <= clock_timestamp()", "stands.ends_at > clock_timestamp()"
    assert before in asked
    assert after in asked
    return asked.replace(before, "true").replace(after, "true")


def _of_any_group(asked: str) -> str:
    """The authority function as if everybody were in every group."""
    joined = "given.group_id = belongs.group_id"
    assert joined in asked
    return asked.replace(joined, "true").replace(
        "JOIN tenants_groupmember", "LEFT JOIN tenants_groupmember"
    )


def _at_any_time(assigning: str) -> str:
    """The assigning of gates as if substitutions knew no time."""
    from approvals.deciders import _WHILE

    assert _WHILE in assigning
    return assigning.replace(_WHILE, "true")


def _of_any_substitution(_: Any) -> Any:
    """Who may decide a gate, as if a substitute were asked nothing but for whom they stand in."""
    from approvals.models import Substitution

    def entitled(gates: Any, among: Any) -> Any:
        rows = Substitution.objects.filter(substitute__in=list(among))
        found = {(one.substitute_id, one.person_id) for one in rows}
        return dict.fromkeys(gates, found)

    return entitled


def _everybody(_: Any) -> Any:
    """Who is to answer an interrupt: whoever is a member."""
    from tenants.models import Membership

    return lambda *_: set(Membership.objects.values_list("user_id", flat=True))


def _nothing_used(_: Any) -> Any:
    """A usage that is always none."""
    return lambda *_, **__: {"steps": 0, "tokens": 0, "cost": "0", "seconds": 0.0}


def _newest_score(_: Any) -> Any:
    """What is kept of a judging, with the score of the last."""
    return lambda _step, verdict, kept: {**kept, "score": verdict.score}


def _unchecked(_: Any) -> Any:
    """Read a run's journal before its steps start, and compare nothing with it."""
    from interrupts.verification import live

    return lambda run: live.read_on(run)[0]


def _unlocked(_: Any) -> Any:
    """A day's row, read by whoever counts in it without waiting for the others."""
    from interrupts.models import AgentDay

    return lambda agent, day: AgentDay.objects.get_or_create(agent_id=agent, day=day)[0]


GUARDS: tuple[Guard, ...] = (
    # Delegation: docs/delegation.md says of each what it keeps.
    Guard(
        "a careless approval teaches nothing",
        "delegation: nothing is learned of who does not look",
        patch("delegation.learner.is_attentive", always(value=True)),
        (f"{LEARNED}/test_attacks.py::test_approvals_in_bulk_in_a_hurry_or_unread_prove_nothing",),
    ),
    Guard(
        "two values must have come together",
        "delegation: nothing unseen is ever automatic",
        patch("delegation.familiarity.Familiarity.is_known", always(value=True)),
        (
            f"{LEARNED}/test_attacks.py::test_two_approved_values_that_never_came_together_are_asked",
            f"{LEARNED}/test_learner_properties.py::test_nothing_unseen_is_ever_automatic",
        ),
    ),
    Guard(
        "an amount has a ceiling",
        "delegation: nothing above what was approved is ever automatic",
        patch("delegation.familiarity.Familiarity._above", always(value=())),
        (
            f"{LEARNED}/test_attacks.py::test_an_amount_above_everything_approved_is_asked",
            f"{LEARNED}/test_learner_properties.py::test_nothing_unseen_is_ever_automatic",
        ),
    ),
    Guard(
        "a day has a level",
        "delegation: a burst of usual calls is asked",
        patch("delegation.familiarity.Familiarity._over_the_day", nothing),
        (
            f"{LEARNED}/test_attacks.py::test_a_burst_of_calls_that_all_look_usual_is_asked_beyond_the_days_level",
        ),
    ),
    Guard(
        "a value that looks like another is none",
        "delegation: what two could read differently is never learned",
        patch("delegation.canonical.is_lookalike", always(value=False)),
        (
            f"{LEARNED}/test_attacks.py::test_a_call_without_one_form_is_asked_however_often_it_was_approved",
        ),
    ),
    Guard(
        "a refusal of something familiar asks again",
        "delegation: a refusal more never widens, and is heard at once",
        patch("delegation.familiarity.Familiarity._forget", nothing),
        (
            f"{LEARNED}/test_attacks.py::test_a_refusal_of_something_familiar_asks_again_about_what_it_touched",
        ),
    ),
    Guard(
        "events are taken in order of their times",
        "delegation: the same events make the same rules",
        patch("delegation.learner._in_order", lambda _: list),
        (f"{LEARNED}/test_learner_properties.py::test_events_in_any_order_make_the_same_rules",),
    ),
    Guard(
        "a change of a rule only narrows",
        "delegation: nobody widens what was learned by hand",
        patch("delegation.predicates._widenings", always(value=())),
        (f"{LEARNED}/test_rules.py::test_a_change_that_would_allow_more_is_refused",),
        red="Unreadable: A ceiling is of an amount",  # without it, what that rests on is asked next
    ),
    # 8, budgets and what a call needs to know: docs/guarantees.md says of each what it keeps.
    Guard(
        "an agent's day is counted under its row's lock",
        "8: the runs of an agent lose no count, and use no more in a day than is declared",
        patch("interrupts.locks.lock_day", _unlocked),
        (
            f"{RACES}/test_days.py::test_runs_at_once_lose_no_count_and_let_in_no_more_than_the_day_has",
        ),
    ),
    Guard(
        "a cost is reserved as its step is let in",
        "8: steps side by side use no more than there is together",
        patch("interrupts.transitions.reservations.take", nothing),
        (f"{ENGINE}/test_days.py::test_steps_side_by_side_do_not_use_more_than_there_is_together",),
    ),
    Guard(
        "an authorization ends where what its call knows does",
        "8: what went stale before it started does not run",
        patch("interrupts.transitions.needs.fresh_for", lambda _: lambda _step, until: until),
        (f"{ENGINE}/test_needs.py::test_an_approval_does_not_outlive_what_it_was_given_on",),
    ),
    Guard(
        "an approval of what needs to know something is not plain",
        "8: the hot approval looks at no clock of what a call knows",
        rewrite("approvals_approve", ("AND s.context IS NULL", "")),
        (
            "tests/approvals/test_days_and_needs.py::test_an_approval_of_what_needs_to_know_goes_the_long_way",
        ),
    ),
    # What an agent tried itself: its word, which shows nothing that is hidden.
    Guard(
        "a dry run of the agent's own hides what the tool calls sensitive",
        "7: no value at a sensitive path is kept or shown in what an agent says of its call",
        patch("interrupts.templates.concealed", lambda _: lambda said, *_: dict(said)),
        (f"{DRY_RUNS}::test_what_is_sensitive_is_neither_kept_nor_shown_in_it",),
    ),
    Guard(
        "a dry run that nobody could read is refused",
        "8: what is shown of an agent's words has a bound",
        patch("interrupts.services.steps._ensure_readable", nothing),
        (f"{DRY_RUNS}::test_what_nobody_could_read_is_refused_with_its_place",),
    ),
    # Previews of python tools: owed where they are declared, and asked within bounds.
    Guard(
        "a preview that is declared is owed",
        "8: a host without the function asks people no less strictly",
        patch(
            "interrupts.effects.offers_of",
            lambda offers: lambda executor, **parts: offers(executor, **{**parts, "preview": None}),
        ),
        (f"{PREVIEWS}::test_a_declared_preview_is_owed_where_its_tool_is_not_installed",),
    ),
    Guard(
        "a preview that hangs is not asked without end",
        "10: foreign code that never returns holds up neither a worker nor a person",
        patch("interrupts.effects.aside.MOST_LATE", lambda _: 1000),
        (
            f"{ENGINE}/effects/test_python.py::test_a_preview_that_is_late_is_left_behind_and_not_asked_without_end",
        ),
    ),
    # A checker that is declared: what it does not say lets nothing pass.
    Guard(
        "only a checker's own word lets a receipt pass",
        "4: what a proxy answers in a checker's place is never read as passed",
        patch(
            "interrupts.effects.declared.rules._CLAIMS",
            lambda claims: {**claims, "verifier": lambda _: None},
        ),
        (f"{CHECKS}::test_a_declared_checkers_answers_claim_no_more_than_they_can_prove",),
    ),
    Guard(
        "what no rule is about is no verdict",
        "4: an answer that means nothing is never read as passed",
        patch("interrupts.effects.declared.outcomes.Rule.holds", always(value=True)),
        (f"{CHECKS}::test_what_no_rule_is_about_is_no_ruling",),
    ),
    # Mails to substitutes: of what they may decide, while they stand in.
    Guard(
        "a substitute is told only while they stand in",
        "7: of what waits, nobody is told for whom it does not wait",
        patch("approvals.deciders._ASSIGN", _at_any_time),
        (f"{OF_SUBSTITUTES}::test_nobody_is_reminded_after_they_stood_in",),
    ),
    Guard(
        "a substitute is told only of what they may decide",
        "7: of what waits, nobody is told for whom it does not wait",
        patch("approvals.deciders.entitled", _of_any_substitution),
        (f"{OF_SUBSTITUTES}::test_of_what_they_may_not_decide_a_substitute_is_told_nothing",),
    ),
    Guard(
        "an interrupt is told to those who are to answer it",
        "7: of what waits, nobody is told for whom it does not wait",
        patch("approvals.owed.answerers", _everybody),
        (
            f"{OF_INTERRUPTS}::test_a_run_that_is_to_complete_is_told_to_those_who_may_agree",
            f"{OF_INTERRUPTS}::test_who_settles_no_more_or_does_not_want_it_is_not_told",
        ),
    ),
    # 1. No effect without an authorization that was current when its intent committed.
    Guard(
        "drain lock",
        "1: a withdrawal answers after the intents that saw the older authority",
        both(
            rewrite("interrupts_advance", (DRAIN, "")),
            rewrite("interrupts_lock_family", (DRAIN, "")),
        ),
        (
            f"{RACES}/test_authority.py::test_a_withdrawal_answers_only_after_the_intents_that_saw_the_older_authority",
            f"{RACES}/test_authority.py::test_a_freeze_lists_the_intents_that_had_not_seen_it",
        ),
    ),
    Guard(
        "authority is read under the run's lock",
        "1: an intent that waited sees what was withdrawn meanwhile",
        rewrite(
            "interrupts_advance",
            (
                DRAIN,
                f"{DRAIN} {READ_EARLY}",
            ),
            (AUTHORITY, "s.authorized_under IS DISTINCT FROM v_seq"),
        ),
        (
            f"{RACES}/test_authority.py::test_an_intent_that_waited_for_the_run_sees_what_was_withdrawn_meanwhile[worker]",
        ),
    ),
    Guard(
        "stamp check at a worker's intent",
        "1: a stale authorization is asked about again",
        rewrite("interrupts_advance", (AUTHORITY, "false")),
        (f"{ENGINE}/test_authority.py::test_what_is_denied_now_does_not_run",),
    ),
    Guard(
        "stamp check at a claim",
        "1: a stale authorization is asked about again",
        patch("interrupts.services.starting.stamp_is_current", always(value=True)),
        (
            f"{ENGINE}/test_authority.py::test_a_claim_that_is_denied_on_the_way_is_refused_and_the_denial_stays",
        ),
    ),
    Guard(
        "a claim's key is looked at under the lock",
        "1: no claim commits once its key's withdrawal has answered",
        patch("interrupts.services.starting.key_now", nothing),
        (
            f"{RACES}/test_authority.py::test_a_claim_that_waited_for_the_run_is_refused_once_its_key_was_revoked",
        ),
    ),
    Guard(
        "freezes are looked at",
        "1: no effect in a freeze's scope starts",
        both(
            rewrite("interrupts_find_startable", ("p_frozen AND EXISTS", "false AND EXISTS")),
            rewrite("interrupts_advance", ("AND NOT v_frozen", "")),
        ),
        (f"{ENGINE}/test_freezes.py::test_no_effect_in_scope_starts[tenant--ran0]",),
    ),
    Guard(
        "a drain is looked at by an intent",
        "1: no worker of a drained host begins anything",
        rewrite("interrupts_advance", ("IF v_drained THEN", "IF false THEN")),
        (
            f"{ENGINE}/test_draining.py::test_a_drained_worker_begins_nothing_until_the_drain_ends",
            f"{RACES}/test_drains.py::test_an_intent_that_waited_for_the_run_sees_the_drain_and_begins_nothing",
        ),
    ),
    Guard(
        "a drain is looked at before a call is sent again or undone",
        "1: no worker of a drained host begins anything",
        patch("interrupts.services.draining.may_not_begin", always(value=False)),
        (
            f"{ENGINE}/test_draining.py::test_a_call_is_not_sent_again_on_a_drained_host",
            f"{ENGINE}/test_draining.py::test_nothing_is_undone_on_a_drained_host",
        ),
    ),
    Guard(
        "a drain waits for the intents that had not seen it",
        "1: no worker of a drained host begins anything once the drain has answered",
        patch("interrupts.services.draining.wait_for_intents", nothing),
        (
            f"{RACES}/test_drains.py::test_a_drain_answers_only_after_the_intents_that_had_not_seen_it",
        ),
        red="without waiting for a lock",
    ),
    Guard(
        "a suspended run starts nothing",
        "1: nothing starts while a gate or a stop is open",
        rewrite("interrupts_advance", ("AND r.status = 'running' AND", "AND")),
        (
            f"{ENGINE}/test_groups.py::test_nothing_of_a_group_starts_before_each_of_its_gates_is_final",
            f"{ENGINE}/test_retries.py::test_a_run_that_is_stopped_tries_nothing_again_before_it_goes_on",
        ),
    ),
    Guard(
        "epoch check",
        "1: queued work of before a stop starts nothing after it",
        rewrite("interrupts_advance", ("r.epoch = p_epoch", "true")),
        (f"{ENGINE}/test_epochs.py::test_queued_work_of_an_old_epoch_starts_nothing",),
    ),
    Guard(
        "nothing_executes_unauthorized",
        "1: the database lets no step execute that was not authorised",
        drop_constraint("interrupts_step", "nothing_executes_unauthorized"),
        (f"{ROWS}::test_nothing_executes_unauthorised",),
    ),
    Guard(
        "a family is locked again while it grows",
        "1: a parent's stop holds a child that was started meanwhile",
        rewrite("interrupts_lock_family", ("EXIT WHEN v_family = v_locked", "EXIT WHEN true")),
        (
            f"{RACES}/test_stops.py::test_a_child_started_while_its_family_was_waited_for_is_locked_with_it",
        ),
    ),
    Guard(
        "an agent is looked at where it is judged",
        "1: what a deactivated agent proposed does not run",
        patch("interrupts.transitions.steps.of_agent", nothing),
        (
            f"{ENGINE}/test_authority.py::test_what_an_agent_proposed_that_was_deactivated_is_denied",
            f"{ENGINE}/test_authority.py::test_what_an_agent_proposes_that_was_deactivated_meanwhile_is_denied",
        ),
    ),
    # What any history shows, whatever else is tried.
    Guard(
        "stamp check at an intent, in any history",
        "1: no call is made under an older authorization",
        rewrite("interrupts_advance", (AUTHORITY, "false")),
        (HISTORIES,),
    ),
    Guard(
        "freezes are looked at, in any history",
        "1: no call is made that is frozen",
        both(
            rewrite("interrupts_find_startable", ("p_frozen AND EXISTS", "false AND EXISTS")),
            rewrite("interrupts_advance", ("AND NOT v_frozen", "")),
        ),
        (HISTORIES,),
    ),
    Guard(
        "who may decide, in any history",
        "1: nobody decides who may not",
        patch("approvals.deciders.check", nothing),
        (HISTORIES,),
    ),
    Guard(
        "limits of authority are asked",
        "1: nobody decides more than their limit allows, and who has one goes the long way",
        both(
            patch("approvals.authority.exceeded", lambda _: lambda *_: ()),
            rewrite("approvals_refusal", ("'beyond-authority'", "NULL")),
        ),
        (
            f"{LIMITS}::test_whoever_is_beyond_their_limit_is_told_the_limit_and_nothing_changes",
            f"{LIMITS}::test_a_person_with_a_limit_goes_the_long_way_and_is_let_through_within_it",
            f"{LIMITS}::test_an_approval_beyond_a_limit_set_since_is_asked_about_anew_before_its_effect",
        ),
    ),
    Guard(
        "only who is in a group has what it may decide",
        "1: authority by a group ends as its member leaves it, on every way to ask",
        both(
            patch("approvals.authority._REFUSALS", _of_any_group),
            rewrite(
                "approvals_by_group",
                ("given.group_id = belongs.group_id", "true"),
                ("JOIN tenants_groupmember", "LEFT JOIN tenants_groupmember"),
            ),
        ),
        (
            f"{GROUPS}::test_leaving_ends_it_at_once_for_inboxes_votes_and_what_has_not_started",
            f"{GROUPS}::test_what_ends_it_is_seen_by_every_way_to_ask[left]",
        ),
    ),
    Guard(
        "each limit of a way must hold",
        "1: of what one holder was given no limit is left out for standing by another",
        rewrite("approvals_ways", ("GROUP BY held.through", "GROUP BY held.through, held.limits")),
        (f"{GROUPS}::test_one_way_is_enough_and_each_limit_of_it_must_hold",),
    ),
    Guard(
        "nobody gives a group that they are in",
        "8: nobody widens their own authority by a group of theirs",
        patch("approvals.services.grants._members_of", always(value=())),
        (f"{GROUPS}::test_nobody_gives_a_group_that_they_are_in_what_it_has_not",),
    ),
    Guard(
        "who comes back is in no group of before",
        "1: authority by a group ends with the membership, and begins with no later one",
        patch("tenants.services.people.leave_groups", always(value=())),
        (f"{GROUPS}::test_who_left_the_tenant_and_comes_back_has_nothing_by_their_former_groups",),
    ),
    Guard(
        "a_group_is_given_a_tool_once",
        "1: the database keeps one grant of a group and tool, so that none is looser beside another",
        drop_constraint("approvals_grouppermission", "a_group_is_given_a_tool_once"),
        (f"{GROUPS}::test_the_database_takes_no_second_of_a_kind_and_none_of_another_tenant",),
    ),
    Guard(
        "approvals_grouppermission_group_id_same_tenant",
        "7: no authority is given to a group of another tenant",
        drop_constraint(
            "approvals_grouppermission", "approvals_grouppermission_group_id_same_tenant"
        ),
        (f"{GROUPS}::test_the_database_takes_no_second_of_a_kind_and_none_of_another_tenant",),
    ),
    Guard(
        "what a substitute is told that it expired",
        "7: nobody is told of what they may not decide",
        patch("approvals.deciders.entitled", _of_any_substitution),
        (f"{OF_SUBSTITUTES}::test_a_substitute_is_told_that_nobody_decided_what_they_might_have",),
    ),
    Guard(
        "a substitution runs in its time only",
        "1: nobody decides for another before or after it was said",
        patch("approvals.authority._REFUSALS", _whenever),
        (f"{SUBSTITUTIONS}::test_it_begins_and_ends_by_itself_at_its_time",),
    ),
    Guard(
        "what a substitute approved holds no longer than the substitution",
        "1: an approval ends with the right it was given by",
        patch("approvals.services.decisions._valid_until", nothing),
        (
            f"{SUBSTITUTIONS}::test_what_a_substitute_approved_starts_no_more_once_it_has_ended_by_itself",
        ),
    ),
    Guard(
        "a person and their substitute are one",
        "1: no quorum is reached by two with one authority",
        patch("approvals.services.decisions._is_own", always(value=False)),
        (f"{SUBSTITUTIONS}::test_the_two_are_one_vote_whoever_comes_first",),
        red="IntegrityError",  # the database holds a part of it too
    ),
    Guard(
        "one_counting_vote_for_a_person",
        "1: the database counts one authority once",
        drop_index("one_counting_vote_for_a_person"),
        (f"{SUBSTITUTIONS}::test_the_database_holds_one_vote_for_a_person",),
    ),
    Guard(
        "a stop reaches those below, in any history",
        "1: no run goes on below one that does not",
        patch("interrupts.transitions.holds._suspend_child", nothing),
        (HISTORIES,),
    ),
    Guard(
        "a lost call is waited out, in any history",
        "4: nothing is asked about that may still land",
        patch("interrupts.transitions.finding.settle_after", always(value=timedelta(0))),
        (HISTORIES,),
    ),
    # 2. What runs is what was approved.
    Guard(
        "what_runs_is_what_was_authorized",
        "2: the database lets no other call execute than the authorised one",
        drop_constraint("interrupts_step", "what_runs_is_what_was_authorized"),
        (f"{ROWS}::test_what_runs_is_what_was_authorised",),
    ),
    Guard(
        "digest check before a call is sent",
        "2: what is sent is byte for byte what was authorised",
        patch("interrupts.worker.step_digest", lambda _: lambda *_: Same()),
        (
            f"{ENGINE}/test_retries.py::test_exactly_what_was_authorised_is_sent_and_nothing_that_was_changed",
        ),
    ),
    Guard(
        "an authorization is for one call",
        "2: a stamp is renewed for the call it was given for only",
        patch("interrupts.transitions.steps.is_call_authorized", always(value=True)),
        (
            f"{ENGINE}/test_authority.py::test_another_call_than_the_authorised_one_is_judged_anew_and_never_stamped",
        ),
    ),
    Guard(
        "digest check at a decision, the hot way",
        "2: an approval is of what was shown",
        rewrite("approvals_approve", ("AND o.digest = p_digest", "")),
        (f"{GATES}::test_what_was_not_shown_is_not_approved[hot]",),
    ),
    Guard(
        "an approval is of the row that was seen",
        "2: an approval is of what was shown, and its answer of what was approved",
        rewrite("approvals_approve", ("AND o.xmin = p_written", "")),
        ("tests/approvals/test_hot.py::test_what_is_approved_is_what_was_seen_a_moment_ago",),
    ),
    Guard(
        "an approval is no older than what it rests on",
        "2: the time of an approval is after all that it rests on, and in its journal's order",
        rewrite(
            "approvals_approve",
            ("AND w.at <= p_at", ""),
            ("AND t.authority_version = p_under", ""),
            ("OR p_at < r.updated_at", ""),
        ),
        (
            "tests/approvals/test_hot.py::test_an_approval_is_no_older_than_what_it_rests_on_and_what_is_told_of_its_run",
        ),
    ),
    Guard(
        "digest check at a decision, the long way",
        "2: an approval is of what was shown",
        patch("approvals.cases.check_state", nothing),
        (f"{GATES}::test_what_was_not_shown_is_not_approved[long]",),
        red="ConfirmationRequired",  # the view of what was shown is missed instead
    ),
    Guard(
        "only what is of low risk is approved with others",
        "2: what takes more than a click is decided by itself",
        patch("approvals.cases.check_bulk", nothing),
        (
            f"{BULK}::test_more_than_low_risk_is_not_approved_with_others",
            f"{BULK}::test_what_takes_a_ceremony_is_not_approved_with_others",
        ),
    ),
    # 3. One performed effect per step, and one step per key.
    Guard(
        "one_live_attempt_per_step",
        "3: a step is tried by one at a time",
        drop_index("one_live_attempt_per_step"),
        (f"{ROWS}::test_a_step_has_one_live_attempt",),
    ),
    Guard(
        "attempt_fence_once",
        "3: each try has a fence of its own",
        drop_constraint("interrupts_attempt", "attempt_fence_once"),
        (f"{ROWS}::test_a_fence_is_given_once",),
    ),
    Guard(
        "fence check",
        "3: a slow worker changes no newer attempt",
        rewrite("interrupts_advance", ("OR s.fence <> p_fence", "")),
        (
            f"{RACES}/test_fences.py::test_a_slow_worker_adds_a_fact_and_changes_no_newer_attempt[failed]",
        ),
    ),
    Guard(
        "reads that are recorded together are still ready",
        "3: what was settled or withdrawn meanwhile is not settled once more",
        rewrite("interrupts_advance", ("AND o.status = 'ready' AND o.fence = 0;", ";")),
        (
            f"{ENGINE}/test_reads_together.py::test_where_one_is_not_ready_any_more_nothing_is_recorded[before]",
        ),
    ),
    Guard(
        "one at a time",
        "3: what was held back waits for the parallel group that runs",
        rewrite("interrupts_advance", ("v_alone := NOT s.parallel", "v_alone := true")),
        (f"{ENGINE}/test_groups.py::test_an_earlier_step_waits_for_the_parallel_group_that_runs",),
    ),
    Guard(
        "step_key_once_in_run",
        "3: a key names one step of a run",
        drop_index("step_key_once_in_run"),
        (f"{ROWS}::test_a_key_names_one_step_of_a_run",),
    ),
    Guard(
        "idempotency_key_names_one_answer",
        "3: a request under a key has one answer",
        drop_constraint("tenants_idempotentanswer", "idempotency_key_names_one_answer"),
        (f"{ROWS}::test_an_idempotency_key_names_one_answer",),
    ),
    Guard(
        "a statement of ours is in Django's transaction",
        "3: what is done for a request stands or falls with its answer",
        patch("tenants.statements._begin", nothing),
        (
            "tests/tenants/test_statements.py::test_what_is_sent_in_a_transaction_of_django_s_stands_or_falls_with_it[alone]",
            "tests/tenants/test_statements.py::test_what_is_sent_in_a_transaction_of_django_s_stands_or_falls_with_it[together]",
        ),
    ),
    Guard(
        "idempotency lock",
        "3: the same key twice at once is refused at once",
        rewrite(
            "tenants_idempotency_begin",
            ("held := pg_try_advisory_xact_lock(p_lock)", "held := true"),
        ),
        (
            f"{RACES}/test_requests.py::test_the_second_is_refused_at_once_while_the_first_is_in_progress",
        ),
        red="TimeoutError",  # it waits for what the first waits for
    ),
    Guard(
        "an agent speaks of its own calls only",
        "3: no agent has a call of the service sent twice",
        patch("interrupts.services.attempts._own_claim", nothing),
        (f"{ENGINE}/test_facts.py::test_an_agent_says_nothing_of_a_call_that_the_service_makes",),
    ),
    Guard(
        "a person's finding is no receipt of the attempt's own",
        "3: success of what was taken as not performed is a fact too",
        patch(
            "interrupts.services.attempts._own_receipt",
            lambda _: _any_receipt,
        ),
        (
            f"{ENGINE}/test_facts.py::test_a_workers_late_success_is_not_repeated_whatever_a_person_said[not_performed]",
            f"{ENGINE}/test_facts.py::test_success_of_what_a_person_took_as_not_performed_is_a_fact_too",
        ),
        red="ReceiptConflict",
    ),
    Guard(
        "a call ends with its lease",
        "3: a worker that was held up sends nothing once its lease is over",
        patch("interrupts.worker._seconds_of_lease", always(value=3600.0)),
        (
            f"{RACES}/test_fences.py::test_a_worker_that_was_held_up_until_its_lease_was_over_sends_nothing",
        ),
    ),
    Guard(
        "a step is set aside",
        "3: a step that kills its workers is not tried for ever",
        patch("interrupts.transitions.finding.set_aside", always(value=False)),
        (
            f"{FAULTS}/test_kills.py::test_a_step_that_killed_three_workers_is_set_aside_and_tried_by_no_fourth",
        ),
    ),
    # 4. A missing response is never read as failure.
    Guard(
        "a lapsed lease is unknown",
        "4: a try without a receipt is found by its lease",
        patch("interrupts.services.looking.lapse_leases", nothing),
        (
            f"{FAULTS}/test_kills.py::test_a_killed_workers_attempt_lapses_to_unknown_and_is_never_repeated[during the call-was_performed1]",
        ),
    ),
    Guard(
        "an unknown outcome suspends its run",
        "4: nothing follows an outcome that nobody knows",
        patch("interrupts.transitions.attempts._ask_about_outcome", nothing),
        (f"{ENGINE}/test_engine.py::test_what_is_not_proved_is_unknown_and_suspends_the_run",),
    ),
    Guard(
        "what may still land is waited out",
        "4: that it was not performed proves nothing while it may still land",
        patch("interrupts.transitions.finding.settle_after", lambda _: lambda step: timedelta(-1)),
        (
            f"{ENGINE}/test_finding.py::test_that_it_was_not_performed_proves_nothing_while_it_may_still_land[a person who asks at once]",
        ),
    ),
    # 5. Journals are gap-free, append-only and chained.
    Guard(
        "gap-free reference",
        "5: each entry follows the one before it",
        drop_constraint("tenants_journalentry", "journal_follows_its_predecessor"),
        (f"{ROWS}::test_a_journal_has_no_gap",),
    ),
    Guard(
        "journals are append-only",
        "5: nobody rewrites an entry, the owner neither",
        drop_trigger("tenants_journalentry", "tenants_journalentry_append_only"),
        (f"{ROWS}::test_a_journal_is_only_appended_to",),
    ),
    Guard(
        "receipts are append-only",
        "5: nobody rewrites a receipt, the owner neither",
        drop_trigger("interrupts_receipt", "interrupts_receipt_append_only"),
        (f"{ROWS}::test_receipts_are_only_appended_to",),
    ),
    Guard(
        "the app role may not rewrite",
        "5: the app role has no right to change history",
        statements(
            "GRANT UPDATE, DELETE, TRUNCATE ON tenants_journalentry, interrupts_receipt,"
            " interrupts_checkpoint TO abeyance_app"
        ),
        (f"{ROWS}::test_the_app_role_has_no_right_to_rewrite_history",),
    ),
    Guard(
        "journal chain",
        "5: each entry is hashed with the one before it, under a key outside the database",
        rewrite(
            "tenants_journal_extend",
            ("sha256(p_outer || sha256(p_inner || head ||", "sha256(sha256("),
        ),
        (
            f"{ROWS}::test_each_entry_is_chained_to_the_one_before_it_under_a_key_outside_the_database",
        ),
        red="Damaged",  # a run whose history does not verify is not resumed
    ),
    Guard(
        "journal chain of several speakers",
        "5: each entry is hashed with the one before it, whoever speaks",
        rewrite(
            "tenants_journal_extend_by",
            ("sha256(p_outer || sha256(p_inner || head ||", "sha256(sha256("),
        ),
        (
            f"{ROWS}::test_each_entry_is_chained_to_the_one_before_it_under_a_key_outside_the_database",
        ),
        red="Damaged",  # a run whose history does not verify is not resumed
    ),
    Guard(
        "what starts is what the journal authorises",
        "5: no forged decision and no second run of a step, whatever the rows say",
        both(
            patch("interrupts.verification.live.check_ready", _unchecked),
            patch("interrupts.worker._check_vouched_for", nothing),
        ),
        (
            f"{TAMPERING}::test_a_decision_that_was_forged_starts_nothing_and_is_shown",
            f"{TAMPERING}::test_what_has_run_is_not_run_again_whatever_its_row_says",
        ),
    ),
    Guard(
        "a read is made while the journal has it ready",
        "5: what was read is not read again since its row was put back",
        patch("interrupts.worker._is_withdrawn", nothing),
        (
            f"{ENGINE}/test_verification.py::test_a_read_that_succeeded_is_not_made_again_since_its_row_was_put_back",
        ),
    ),
    Guard(
        "a damaged run starts nothing more",
        "5: nothing starts of a run that does not verify",
        rewrite("interrupts_advance", ("AND r.damage IS NULL", "")),
        (
            f"{ENGINE}/test_verification.py::test_a_run_that_is_found_damaged_during_a_call_starts_nothing_more",
        ),
    ),
    Guard(
        "a gate of a damaged run is not approved at once",
        "5: nobody approves what is not what happened",
        rewrite("approvals_approve", ("OR r.damage IS NOT NULL", "")),
        (
            "tests/approvals/test_hot.py::test_what_is_not_plain_is_left_to_the_long_way_unwritten[close_by_damage]",
            f"{TAMPERING}::test_a_gate_of_a_damaged_run_is_not_decided",
        ),
    ),
    Guard(
        "rows are held against the journal",
        "5: every row of a run is what its journal says",
        patch("interrupts.verification.rows.faults", lambda _: lambda *_: iter(())),
        (
            f"{TAMPERING}::test_each_column_is_vouched_for_or_named_with_a_reason[interrupts_receipt]",
        ),
    ),
    # 6. One of each; what is suspended says what it waits for.
    Guard(
        "one_pending_gate_per_step",
        "6: nobody is asked twice at once about one step",
        drop_index("one_pending_gate_per_step"),
        (f"{GATES}::test_a_step_has_one_pending_gate",),
    ),
    Guard(
        "a_suspended_run_has_an_open_interrupt",
        "6: what is suspended has an interrupt that says what it waits for",
        drop_constraint("interrupts_run", "a_suspended_run_has_an_open_interrupt"),
        (f"{ROWS}::test_a_suspended_run_has_an_open_interrupt",),
    ),
    Guard(
        "an_open_interrupt_suspends_its_run",
        "6: no run goes on beside an open interrupt",
        drop_constraint("interrupts_run", "an_open_interrupt_suspends_its_run"),
        (f"{ROWS}::test_an_open_interrupt_suspends_its_run",),
    ),
    Guard(
        "legal moves of a run",
        "6: what ended stays ended",
        drop_trigger("interrupts_run", "interrupts_run_status_moves"),
        (f"{ROWS}::test_a_run_moves_as_the_table_of_moves_says",),
    ),
    Guard(
        "legal moves of a step",
        "6: a step moves as the table of moves says",
        drop_trigger("interrupts_step", "interrupts_step_status_moves"),
        (f"{ROWS}::test_a_step_moves_as_the_table_of_moves_says",),
    ),
    Guard(
        "legal moves of a gate",
        "6: a gate that is final stays final",
        drop_trigger("approvals_gate", "approvals_gate_state_moves"),
        (f"{GATES}::test_a_gate_moves_as_the_table_of_moves_says",),
    ),
    Guard(
        "which moves the trigger is not called for",
        "6: the condition of a trigger lets no move by that the table of moves does not have",
        rewrite("approvals_gate_state_may_move", ("ARRAY[", "ARRAY['withdrawn pending', ")),
        (
            f"{ROWS}::test_every_move_that_the_table_of_moves_does_not_have_is_refused_and_no_other[approvals_gate.state]",
        ),
    ),
    Guard(
        "no gate expires sooner, or later than policy allows",
        "6: a person gives a gate more time within bounds alone",
        patch("approvals.services.extensions._check_time", nothing),
        ("tests/approvals/test_extensions.py::test_what_is_out_of_bounds_changes_nothing",),
    ),
    Guard(
        "a tool's decisions",
        "nobody decides a call in a way that its tool does not allow",
        patch("approvals.cases.check_choice", nothing),
        (
            "tests/approvals/test_allowed_decisions.py::test_what_the_tool_takes_away_is_refused_and_nothing_changes",
        ),
    ),
    Guard(
        "declared reasons",
        "a reason that is chosen is one that was declared, and needed where any is",
        patch("approvals.cases._check_reason", nothing),
        ("tests/approvals/test_reasons.py::test_what_is_not_declared_is_refused_with_its_place",),
    ),
    # 7. Tenants.
    Guard(
        "row-level security on runs",
        "7: no row of a tenant is visible from another",
        statements("ALTER TABLE interrupts_run DISABLE ROW LEVEL SECURITY"),
        (
            f"{ROWS}::test_no_row_of_another_tenant_is_seen_or_changed_whatever_the_code_forgets",
            f"{ROWS}::test_no_row_is_written_into_another_tenant",
        ),
        red="IntegrityError",  # another tenant's agent: the composite reference still holds
    ),
    Guard(
        "row-level security chooses no index",
        "7: what keeps a tenant's rows apart does not have all of them read",
        statements(
            "ALTER POLICY interrupts_checkpoint_tenant ON interrupts_checkpoint USING (tenant_id ="
            " nullif(current_setting('abeyance.tenant_id', true), '')::uuid)"
        ),
        ("tests/test_indexes.py::test_no_frequent_statement_walks_all_that_a_tenant_has[seen]",),
    ),
    Guard(
        "the latest gates are found from the end of an index",
        "what looks back reads no gate that is older than was asked for",
        rewrite(
            "approvals_latest",
            ("(o.tenant_id, o.id) >= (p_tenant, p_first)", "o.tenant_id = p_tenant"),
        ),
        (
            "tests/approvals/test_hindsight.py::test_what_is_older_or_anothers_is_not_read[False-None]",
        ),
    ),
    Guard(
        "composite reference",
        "7: no row refers to one of another tenant",
        drop_constraint("interrupts_step", "interrupts_step_run_id_same_tenant"),
        (f"{ROWS}::test_no_row_refers_to_one_of_another_tenant",),
    ),
    Guard(
        "sensitive bodies are sealed",
        "7: what a tool calls sensitive stands nowhere in clear",
        patch("interrupts.content.seal", lambda _: lambda _tenant, body: (body, "")),
        (f"{ENGINE}/test_sensitive.py::test_arguments_and_results_are_sealed_at_rest",),
    ),
    Guard(
        "the open stage",
        "nobody decides in the place of the stage that is open",
        patch("approvals.deciders.check_gate", nothing),
        (
            "tests/approvals/test_stages.py::test_only_the_people_of_the_open_stage_may_say_anything[long]",
        ),
    ),
    Guard(
        "approvals of stages that stand",
        "1: what was approved in a stage by one who lost the right does not run",
        both(
            patch("approvals.authorizer._given", always(value=True)),
            patch("approvals.stages.behind", always(value=set())),
        ),
        (
            "tests/approvals/test_stages.py::test_what_was_approved_by_who_lost_the_right_does_not_run[alice-group]",
            "tests/approvals/test_stages.py::test_who_lost_the_right_in_an_earlier_stage_is_found_at_the_next_decision",
        ),
    ),
    Guard(
        "what a draft asks otherwise",
        "whoever tries a policy is told what it asks people otherwise, and what it lets complete",
        both(
            patch("approvals.services.simulation._asked_otherwise", always(value=())),
            patch("approvals.services.simulation._try_completions", nothing),
        ),
        (
            f"{SIMULATION}::test_what_people_are_asked_otherwise_is_a_change_told_in_words_the_looser_first",
            f"{SIMULATION}::test_completions_are_tried_where_policy_gates_them",
        ),
    ),
    Guard(
        "the clock of a stage",
        "a stage's own time begins when it is opened",
        patch("approvals.clocks.start", nothing),
        (
            f"{STAGE_ENDS}::test_a_stages_clock_starts_when_it_is_opened_and_not_before",
            f"{STAGE_ENDS}::test_a_stage_that_is_opened_again_has_its_time_again_within_the_whole",
        ),
    ),
    Guard(
        "the end of the whole decision",
        "a decision ends when its rule says, whatever a stage has left",
        patch("approvals.clocks._latest", always(value=None)),
        (
            f"{STAGE_ENDS}::test_the_whole_decision_ends_whatever_its_stages_have_left",
            f"{STAGE_ENDS}::test_whoever_decides_the_open_stage_extends_it_and_no_other_and_never_past_the_whole",
        ),
    ),
    Guard(
        "the time of a stage that is up",
        "no stage has time again once the open one's is up",
        patch("approvals.clocks.is_over", nothing),
        (f"{STAGE_ENDS}::test_a_stage_whose_time_is_up_gives_no_stage_before_it_time_again",),
    ),
    Guard(
        "what is stamped anew ends with its first substitution",
        "1: an approval that is found good again ends with the right it was given by",
        patch("approvals.authorizer._end_with_substitutions", nothing),
        (
            f"{SUBSTITUTIONS}::test_where_one_of_two_substitutions_was_ended_it_starts_no_later_than_the_other_ends[before the other]",
        ),
    ),
    Guard(
        "a substitution that is ended is looked for at once",
        "1: an approval by a right that was ended keeps no stage approved",
        patch("approvals.services.substitutions.refresh_inboxes", nothing),
        (f"{SUBSTITUTIONS}::test_a_substitution_that_is_ended_opens_its_stage_again_at_once",),
    ),
    Guard(
        "whose authority an edit in stages is by",
        "1: an edit counts in the stage of the authority that it is by",
        patch("approvals.cases._check_editor", nothing),
        (f"{SUBSTITUTIONS}::test_an_edit_by_a_substitute_counts_in_the_persons_stage",),
    ),
    Guard(
        "what a substitute approved before",
        "a person is asked once over all stages, for whomever they approve",
        patch("approvals.substitutes._approved_before", _no_votes),
        (f"{SUBSTITUTIONS}::test_what_a_substitute_approved_waits_for_them_in_no_later_stage",),
    ),
    Guard(
        "who gives a gate more time",
        "only those extend a gate who decide it by what policy says now",
        patch("approvals.services.extensions._check_person", nothing),
        (
            f"{EXTENSIONS}::test_only_those_extend_a_gate_who_decide_it_by_what_policy_says_now[together]",
            f"{EXTENSIONS}::test_only_those_extend_a_gate_who_decide_it_by_what_policy_says_now[stages]",
        ),
    ),
    Guard(
        "the longer cool-down stays",
        "1: nobody is asked next with less time to take it back than policy says",
        patch("approvals.routing._cool_down", always(value={})),
        (
            f"{ESCALATION}::test_who_is_asked_next_leaves_out_no_cool_down_that_is_said_since[policy]",
            f"{ESCALATION}::test_who_is_asked_next_leaves_out_no_cool_down_that_is_said_since[edit]",
        ),
        red="KeyError",  # the gate knows of none any more
    ),
    Guard(
        "the stricter end stays",
        "9: a newer policy has no gate end milder than it was to",
        patch("approvals.routing.ENDS", lambda ends: ends[::-1]),
        (f"{ESCALATION}::test_a_policy_that_escalates_by_now_loosens_no_gate_that_is_rejected",),
    ),
    Guard(
        "a limit beside what is left of it",
        "8: nobody widens their own authority by taking a part of it away",
        patch("approvals.services.grants._is_left", always(value=False)),
        (f"{LIMITS}::test_nobody_takes_off_themselves_the_limit_beside_what_is_left",),
    ),
    Guard(
        "what is to be undone when its run ends",
        "4: what a person had undone is undone, though its run ends before",
        patch("interrupts.transitions.compensation.pending", always(value=False)),
        (
            f"{ENGINE}/test_compensation.py::test_what_is_to_be_undone_is_undone_although_its_run_ends_before[complete_run]",
        ),
    ),
    Guard(
        "a completion waits for what is judged",
        "1: no run completes while what it did is being judged",
        patch("interrupts.transitions.runs.unsettled", nothing),
        (f"{VERDICTS}::test_a_completion_that_is_agreed_to_waits_for_what_is_judged_and_undone",),
    ),
    Guard(
        "the history of what is forked",
        "5: nothing is forked of a run that does not verify",
        patch("interrupts.verification.check_history", nothing),
        (f"{ENGINE}/test_forks.py::test_a_run_whose_history_does_not_verify_is_not_forked",),
    ),
    Guard(
        "what an older host grants",
        "8: the database takes a grant without limits for one that has none",
        statements("ALTER TABLE approvals_toolpermission ALTER COLUMN limits DROP DEFAULT"),
        (f"{ENGINE}/test_older_hosts.py::test_what_an_older_host_grants_has_no_limits",),
        red="IntegrityError",  # it could not write it at all
    ),
    # What a run goes on from.
    Guard(
        "checkpoint version",
        "nothing goes on from a checkpoint of a version that is not known",
        patch("interrupts.transitions.versions.check_known", nothing),
        (
            f"{ENGINE}/test_checkpoint_versions.py::test_a_run_goes_on_from_no_checkpoint_of_an_unknown_version[99]",
            f"{ENGINE}/test_checkpoint_versions.py::test_no_run_is_forked_from_a_checkpoint_of_an_unknown_version[99]",
        ),
    ),
    Guard(
        "checkpoint shape",
        "nothing is made up for a checkpoint that does not say it",
        patch("interrupts.transitions.versions._check_shape", nothing),
        (
            f"{ENGINE}/test_checkpoint_versions.py::test_nothing_is_made_up_for_a_checkpoint_that_does_not_say_it[next_step-None]",
        ),
    ),
    Guard(
        "digests of a state's chain",
        "a state whose body was changed is not given out",
        patch("interrupts.services.agentstate._check", nothing),
        (f"{ENGINE}/test_checkpoints.py::test_a_state_whose_body_was_changed_is_not_given_out[1]",),
    ),
    # 8. Agents decide nothing.
    Guard(
        "refusals by right are told",
        "8: whoever tries what is not theirs leaves a line",
        patch("tenants.refusals.tell", nothing),
        ("tests/cases/test_audit_trail.py::test_who_was_refused_leaves_a_line",),
        red="ValueError",  # no line where one is looked for
    ),
    Guard(
        "people only",
        "8: an agent decides no gate",
        both(
            patch("tenants.api.operation.Operation.admit", nothing),
            patch("tenants.principal.Principal.is_person", lambda _: property(lambda _: True)),
        ),
        (f"{GATES}::test_an_agent_decides_no_gate",),
        red="NotAnApprover",  # an agent has no authority of a person's either
    ),
    Guard(
        "a fresh sign-in before what can't be undone, on a page",
        "8: a session that was left open approves nothing that can't be undone",
        patch("approvals.views.decision._asks_password", always(value=False)),
        ("tests/pages/test_fresh_sign_in.py::test_an_edit_asks_for_it_too",),
    ),
    Guard(
        "a fresh sign-in before what can't be undone, by the API",
        "8: a session that was left open approves nothing that can't be undone",
        patch("approvals.api.gates.is_fresh", always(value=True)),
        (
            "tests/pages/test_fresh_sign_in.py::test_the_api_takes_no_such_approval_from_an_old_session[plain]",
            "tests/pages/test_fresh_sign_in.py::test_the_api_takes_no_such_approval_from_an_old_session[keyed]",
        ),
    ),
    # 9. Nothing expires into approval; a GET changes nothing.
    Guard(
        "a_gate_expires_into_no_approval",
        "9: the database knows no gate that expires into approval",
        drop_constraint("approvals_gate", "a_gate_expires_into_no_approval"),
        (f"{GATES}::test_nothing_expires_into_approval",),
    ),
    Guard(
        "an expired gate rejects",
        "9: time lets nothing go on that nobody decided",
        patch(
            "interrupts.services.looking._expire_gate",
            lambda _: _resume,
        ),
        (f"{ENGINE}/test_expiry.py::test_a_gate_that_nobody_decides_rejects_its_step",),
    ),
    Guard(
        "a gate that escalates asks others",
        "9: an escalation lets nothing go on that nobody decided",
        patch("approvals.authorizer._escalate", lambda _: _go_on_instead),
        (
            f"{ESCALATION}::test_where_nobody_answers_the_next_group_is_asked_for_as_long_again",
            f"{ESCALATION}::test_after_them_it_is_rejected",
        ),
    ),
    Guard(
        "who is asked next decides",
        "1: who was asked first has no say once others are asked",
        patch("approvals.routing.approvers", lambda _: lambda *_: []),
        (f"{ESCALATION}::test_only_the_group_that_is_asked_now_decides",),
    ),
    Guard(
        "what cools down is not started",
        "1: an approval that cools down takes no effect before its end",
        rewrite("interrupts_find_startable", ("OR c.due_at > p_now", "")),
        (f"{ESCALATION}::test_an_approval_cools_down_before_it_takes_effect",),
    ),
    Guard(
        "what cools down is approved the long way",
        "1: an approval that cools down takes no effect before its end, however it was approved",
        rewrite("approvals_approve", ("AND NOT o.routing ? 'cool_down'", "")),
        (
            f"{ESCALATION}::test_an_approval_cools_down_before_it_takes_effect",
            f"{ESCALATION}::test_with_a_key_it_cools_down_alike",
        ),
    ),
    Guard(
        "a scorer without an answer counts as 1",
        "a condition or score that errs never allows",
        patch("approvals.policy.scoring.HIGHEST", lambda _: 0.0),
        (
            "tests/approvals/test_policy_scorers.py::test_what_is_no_score_counts_as_the_highest_and_says_so",
        ),
    ),
    Guard(
        "a GET changes nothing",
        "9: a look leaves no trace",
        patch("interrupts.api.runs.may_see", _touching),
        (f"{ENGINE}/api/test_refusals.py::test_a_look_changes_nothing",),
    ),
    # 10. Everything survives a restart.
    Guard(
        "due_at stands in the row",
        "10: what no message told is found by the sweep",
        patch("interrupts.work.Work.due", nothing),
        (
            f"{FAULTS}/test_services.py::test_without_a_broker_proposals_succeed_and_run_once_it_is_back",
        ),
    ),
    Guard(
        "one run keeps no other from the sweep",
        "10: a damaged run stops nobody else's",
        patch("interrupts.sweep.UNWORKABLE", lambda _: ()),
        (
            f"{FAULTS}/test_services.py::test_a_run_that_cannot_be_looked_at_keeps_no_other_from_the_sweep",
        ),
        red="Damaged",
    ),
    Guard(
        "one sweeper keeps no other from sweeping",
        "10: a lease is found whatever another sweeper meets",
        patch("interrupts.sweep._swept", lambda _: lambda sweeper: sweeper()),
        (
            f"{FAULTS}/test_sweeping.py::test_a_sweeper_that_cannot_do_its_work_keeps_no_other_from_sweeping",
        ),
        red="OSError",
    ),
    Guard(
        "a record is made again",
        "10: what came back is not lost with a connection",
        patch("interrupts.worker.RECORD_SECONDS", lambda _: -1.0),
        (
            f"{FAULTS}/test_services.py::test_what_came_back_is_recorded_though_the_connection_was_lost_meanwhile[succeeded-idempotent]",
        ),
        red="OperationalError",
    ),
    Guard(
        "a repeat that did not begin proves nothing",
        "4: of a lost call nothing is known by another that was not sent",
        patch("interrupts.transitions.attempts._is_repeated", always(value=False)),
        (
            f"{ENGINE}/test_declared_far_end.py::test_a_call_sent_again_that_did_not_begin_proves_nothing_of_the_lost_one[False]",
            f"{ENGINE}/test_declared_far_end.py::test_a_call_sent_again_that_did_not_begin_proves_nothing_of_the_lost_one[True]",
        ),
    ),
    Guard(
        "a worker looks whether its call is to be cancelled",
        "4: a cancel reaches the call that is being made",
        patch("interrupts.selectors.asked_to_cancel", always(value=())),
        (
            f"{ENGINE}/test_cancelling.py::test_a_stop_cuts_the_call_whose_outcome_is_unknown_until_the_far_end_is_asked",
        ),
        red="TimeoutError",
    ),
    Guard(
        "an end that this side made ends no answer",
        "4: what a cancel cut is never read as an answer",
        patch("interrupts.effects.exchange._is_cut", always(value=False)),
        (
            f"{ENGINE}/effects/test_cancellation.py::test_an_answer_that_was_cut_proves_nothing[whole]",
        ),
    ),
    Guard(
        "what a run has used is handed to conditions",
        "8: an agent can never widen a policy, nor by using more than it is asked about",
        patch("approvals.circumstances.usage_of", _nothing_used),
        (
            "tests/approvals/test_circumstances.py::test_the_steps_of_one_proposal_count_each_other",
            "tests/approvals/test_circumstances.py::test_a_run_that_has_spent_is_asked_and_why_tells_by_what_it_had_spent_then",
        ),
    ),
    Guard(
        "what may have happened counts for a milestone",
        "8: an agent can never widen a policy, nor pass a milestone unasked",
        patch("approvals.reaching._SO_FAR", lambda sql: sql.replace("'unknown', ", "")),
        (
            "tests/approvals/test_milestones.py::test_effects_are_counted_that_happened_may_have_and_may_yet",
        ),
    ),
    Guard(
        "a milestone is passed by an approval that stands",
        "8: an agent can never widen a policy, nor pass a milestone unasked",
        patch(
            "approvals.reaching._SO_FAR",
            lambda sql: sql.replace("s.authorized_by = 'decision'", "true").replace(
                "('ready', 'exec", "('rejected', 'ready', 'exec"
            ),
        ),
        ("tests/approvals/test_milestones.py::test_a_person_who_refuses_has_let_nothing_pass",),
    ),
    Guard(
        "a run's completion is asked about",
        "8: an agent can never widen a policy, nor pass a milestone unasked",
        patch("interrupts.transitions.completion._is_agreed", always(value=True)),
        (
            "tests/approvals/test_milestones.py::test_a_run_is_completed_once_a_person_agrees_to_its_result",
        ),
    ),
    Guard(
        "nobody agrees to their own run's completion",
        "8: who a run is for, or answers for its agent, lets nothing of it pass",
        patch("interrupts.transitions.completion.may_not_agree", always(value=False)),
        (
            "tests/approvals/test_milestones.py::test_nobody_agrees_for_whom_it_runs_or_whose_agent_it_is",
        ),
    ),
    Guard(
        "the score that was given first stays",
        "8: an agent can never lower a risk, nor its record by an edit of others",
        patch("approvals.judging._seen", _newest_score),
        (
            "tests/approvals/test_history.py::test_a_score_is_kept_as_it_was_given_and_set_against_what_people_decided",
        ),
    ),
    Guard(
        "what was not read is no ground for a declared outcome",
        "4: a missing response is never read as failure, whatever a tool declares",
        patch("interrupts.effects.declared.effect.read_body", _as_if_read),
        (
            f"{ENGINE}/effects/test_declared_calls.py::test_no_declaration_makes_anything_of_an_answer_that_broke_off[broke off]",
        ),
    ),
    Guard(
        "a value stays in its segment of the path",
        "2: what runs is what was approved: no argument leads elsewhere",
        patch("interrupts.effects.declared.filling._STEPS", lambda _: frozenset()),
        (
            f"{ENGINE}/effects/test_declared_calls.py::test_a_value_that_could_lead_elsewhere_is_not_sent[..]",
            f"{ENGINE}/effects/test_declared_calls.py::test_a_value_that_could_lead_elsewhere_is_not_sent[../admin]",
        ),
    ),
    Guard(
        "answers are scrubbed of secrets",
        "7: a tenant's secret stands nowhere, also where the far end repeats it",
        patch("interrupts.effects.declared.scrubbing._forms", always(value=())),
        (
            f"{ENGINE}/test_declared_far_end.py::test_a_secret_stands_nowhere_whatever_the_far_end_says",
            "tests/pages/test_secrets.py::test_a_secret_is_on_no_page",
        ),
    ),
    Guard(
        "a verdict holds its run",
        "1: no effect starts while what was done before is being judged",
        rewrite("interrupts_advance", ("AND r.verdicts_holding = 0", "")),
        (
            f"{VERDICTS}::test_nothing_starts_until_the_receipt_is_judged_and_passed",
            f"{VERDICTS}::test_what_is_to_be_undone_is_undone_before_anything_starts",
        ),
    ),
    Guard(
        "no word of a verifier passes nothing",
        "4: a missing verdict is never taken for one that passed",
        patch("interrupts.transitions.judging.passes", always(value=True)),
        (
            f"{VERDICTS}::test_no_word_is_asked_for_again_and_never_taken_for_passed",
            f"{VERDICTS}::test_what_is_rejected_interrupts_with_what_was_done_and_the_verifiers_words",
        ),
    ),
    Guard(
        "a verdict is recorded once",
        "4: what an older try says late changes nothing",
        patch("interrupts.services.judging.overtaken", always(value=False)),
        (f"{VERDICTS}::test_a_late_or_second_verdict_changes_nothing",),
        red="CheckViolation|IntegrityError|no such move",
    ),
    Guard(
        "the database lets a verdict move once",
        "4: a verdict that is recorded stays what it is, whatever the code above forgets",
        drop_trigger("interrupts_verdict", "interrupts_verdict_status_moves"),
        (f"{VERDICTS}::test_the_database_lets_no_verdict_be_taken_back",),
    ),
    Guard(
        "nothing starts that the journal says is held",
        "1: a hold that was taken off the run's row lets nothing start",
        patch(
            "interrupts.verification.verdicts.VerdictsTold.hold",
            lambda _: property(lambda _self: False),
        ),
        (f"{VERDICTS}::test_a_hold_taken_off_the_runs_row_is_told_and_starts_nothing",),
    ),
    Guard(
        "a rule covers the call",
        "8: an agent's call runs without asking only where a rule of a person covers it exactly",
        patch("delegation.calls.refusal", always(value=None)),
        (
            f"{AUTOMATIC}::test_what_the_rule_does_not_cover_is_asked_about[arguments0]",
            f"{AUTOMATIC}::test_what_the_rule_does_not_cover_is_asked_about[arguments2]",
            f"{AUTOMATIC}::test_another_agent_is_asked_about",
        ),
    ),
    Guard(
        "a rule decides only what policy asks one person about",
        "8: no rule stands in for a quorum, for stages, or for what a person has to see",
        patch("delegation.authorizer.may_be_delegated", always(value=True)),
        tuple(
            f"{AUTOMATIC}::test_what_policy_asks_more_about_than_one_person_or_for_another_cause"
            f"_is_asked[rule{at}]"
            for at in (0, 1, 2, 3, 5)
        ),
    ),
    Guard(
        "a rule has its person's authority and no other",
        "8: who may not decide a call has no rule that decides it",
        patch("delegation.authorizer._may", always(value=True)),
        (
            f"{AUTOMATIC}::test_a_person_who_may_not_decide_it_has_no_rule_that_does",
            f"{AUTOMATIC}::test_a_limit_of_the_persons_authority_holds_for_their_rules",
            f"{AUTOMATIC}::test_nobody_s_rule_decides_what_runs_for_them_or_what_their_own_agent_does",
        ),
    ),
    Guard(
        "what a rule allowed is asked anew",
        "1: nothing starts by a rule that was taken away",
        patch("delegation.authorizer._still_allows", always(value=True)),
        (
            f"{AUTOMATIC}::test_what_takes_the_rule_away_stops_what_it_allowed_before_it_starts[ask]",
            f"{AUTOMATIC}::test_what_takes_the_rule_away_stops_what_it_allowed_before_it_starts[pause]",
        ),
    ),
    Guard(
        "taking a rule away raises the authority version",
        "1: once it has answered, nothing starts by what was allowed before",
        patch("tenants.authority.raise_authority", always(value=1)),
        (
            f"{ACTS}::test_an_intent_that_waited_while_the_rule_was_taken_away_starts_nothing[pause]",
            f"{AUTOMATIC}::test_a_rule_that_was_revoked_stops_what_it_allowed_before_it_starts",
        ),
        red="it does not wait|it ended without waiting",
    ),
    Guard(
        "one person's rules speak for a call",
        "8: what any of several people's rules allows does not add up",
        patch("delegation.authorizer._of_one_person", _of_anybody),
        (f"{AUTOMATIC}::test_of_several_who_may_decide_one_is_drawn_whose_rule_alone_may_speak",),
    ),
    Guard(
        "what policy denied since sleeps",
        "8: a rule does not outlive policy's denial of its tool unless its person says so again",
        patch("delegation.authorizer._denied_in", always(value=0)),
        (
            f"{LEARNED}/test_denied.py::test_it_does_not_speak_even_before_anything_had_it_sleep",
            f"{LEARNED}/test_denied.py::test_what_it_had_allowed_before_does_not_start_either",
            f"{LEARNED}/test_denied.py::test_a_new_denial_has_it_sleep_whatever_its_condition_says",
        ),
    ),
    Guard(
        "what is learned wakes nothing that policy denied",
        "8: a rule sleeps over policy's denial of its tool until its person says otherwise",
        patch("delegation.services.learning._heed_denials", nothing),
        (
            f"{LEARNED}/test_denied.py::test_what_is_learned_does_not_wake_it",
            f"{LEARNED}/test_denied.py::test_what_sleeps_by_itself_is_not_woken_over_a_denial",
        ),
    ),
    Guard(
        "what decides one call is bounded",
        "8: however many rules a person has, so many are read to decide a call",
        patch("delegation.services.rules._check_active", nothing),
        (
            f"{ACTS}::test_so_many_rules_of_a_person_speak_for_a_tool_and_no_more",
            f"{LEARNED}/test_bounds.py::test_no_more_rules_of_a_person_begin_at_once_than_may_speak",
        ),
    ),
    Guard(
        "a day is counted under its lock",
        "8: whoever proposes at once, a day's bounds hold",
        patch("delegation.locks.lock_day", lambda _: _unlocked_day),
        (f"{AUTOMATIC}::test_a_days_bound_holds_for_whoever_proposes_at_once",),
        red="IntegrityError|UniqueViolation",
    ),
    Guard(
        "careless approvals teach nothing",
        "8: what nobody looked at is never asked less for it",
        patch("delegation.learner.is_attentive", always(value=True)),
        (f"{LEARNING}::test_what_is_approved_without_looking_teaches_nothing",),
    ),
    Guard(
        "what happened is one event",
        "5: events are collected once, whatever collects them",
        drop_constraint("delegation_decisionevent", "decision_event_source_once"),
        (f"{EVENTS}::test_events_are_never_changed_nor_taken_away",),
    ),
    Guard(
        "an accepted rule heeds a refusal",
        "8: what its person refused is not allowed again by their rule",
        patch("delegation.services.learning._heed_refusal", nothing),
        (
            f"{LEARNING}::test_an_accepted_rule_sleeps_once_its_person_refuses_what_it_would_allow",
            f"{LEARNING}::test_what_was_undone_has_the_rule_sleep_that_allowed_it",
        ),
    ),
    Guard(
        "what left a spot check unanswered is asked again",
        "8: a spot check is not escaped by proposing the same anew",
        patch("delegation.authorizer._is_asked_again", always(value=False)),
        (
            f"{SPOT_CHECKS}::test_a_call_whose_spot_check_was_left_is_asked_again_until_somebody_answers[open]",
            f"{SPOT_CHECKS}::test_a_call_whose_spot_check_was_left_is_asked_again_until_somebody_answers[cancelled]",
            f"{SPOT_CHECKS}::test_another_name_for_the_same_does_not_escape_a_check_that_was_closed",
            f"{SPOT_CHECKS}::test_whose_check_is_not_answered_is_asked_though_another_would_be_drawn",
            f"{SPOT_CHECKS}::test_a_check_of_whom_nobody_can_ask_any_more_is_asked_of_who_is_drawn[requester]",
            f"{SPOT_CHECKS}::test_a_check_of_whom_nobody_can_ask_any_more_is_asked_of_who_is_drawn[revoked]",
        ),
    ),
    Guard(
        "what nobody can read any more was of everything",
        "8: a refusal that was erased before it was learned of is not passed over",
        patch("delegation.backtests.lost", nothing),
        (
            f"{LEARNED}/test_lost.py::test_every_rule_of_the_tool_sleeps_until_its_person_looks_at_it[reject]",
            f"{LEARNED}/test_lost.py::test_what_was_undone_and_erased_stops_them_too",
            f"{LEARNED}/test_lost.py::test_a_learned_rule_is_not_woken_by_what_is_learned_since",
        ),
    ),
    Guard(
        "a person has so many rules of a tool",
        "8: what is read at a call is bounded, whoever writes rules by hand",
        patch("delegation.services.rules._check_room", nothing),
        (
            f"{LEARNED}/test_bounds.py::test_a_person_has_so_many_rules_of_a_tool_and_one_more_once_one_has_ended",
        ),
    ),
    Guard(
        "a rule by hand holds so much",
        "8: what is read at a call is bounded, whatever a rule lists",
        patch("delegation.drafts._check_bounds", nothing),
        (
            f"{LEARNED}/test_bounds.py::test_what_one_holds_is_bounded_and_refused_where_it_is_too_much",
        ),
    ),
    Guard(
        "an agent is told from those that had its name",
        "8: no agent meets the rules of another, whatever it is called",
        patch("tenants.models.machines.identity_of", _one_identity),
        (
            f"{LEARNED}/test_agents.py::test_neither_a_renamed_agent_nor_the_one_with_its_name_meets_its_rules",
            f"{LEARNED}/test_agents.py::test_what_was_allowed_before_its_agent_ended_does_not_start_under_the_new_one",
        ),
    ),
    Guard(
        "a person is owed a mail of their rules",
        "8: who is to look at a rule is told",
        patch("approvals.owed.tell_of_rule", nothing),
        (
            f"{LEARNED}/test_told.py::test_a_suggestion_is_told_once_and_its_link_decides_nothing",
            f"{LEARNED}/test_told.py::test_each_pause_by_a_check_is_told_once_while_the_rule_sleeps",
        ),
        red="not enough values to unpack",
    ),
    Guard(
        "a rule is its person's own",
        "8: nobody lets another's rule begin, narrows it, or dismisses it",
        patch("delegation.services.rules._own", _anybodys),
        (f"{ACTS}::test_only_its_person_accepts_narrows_or_dismisses_a_rule",),
    ),
    Guard(
        "a rule is shown to its person and to admins",
        "8: what is learned of a person is told to nobody else",
        patch("delegation.services.rules.admit", nothing),
        (
            f"{RULES_API}::test_rules_are_for_people_and_one_is_its_persons_own_and_an_admins",
            "tests/pages/test_delegation.py::test_a_rule_of_another_is_nobodys_but_an_admins[bob]",
        ),
        red="KeyError",  # an answer has no code
    ),
    Guard(
        "a rule begins and narrows as it was read",
        "8: who read another version of a rule lets nothing begin",
        patch("delegation.services.rules._check_version", nothing),
        (
            f"{RULES_API}::test_a_rule_is_narrowed_accepted_and_revoked",
            "tests/pages/test_delegation.py::test_a_rule_is_narrowed_turned_on_and_revoked_by_plain_forms",
        ),
    ),
    Guard(
        "agents are not told which rule decided",
        "8: agents are told nothing of the rules of people",
        patch("interrupts.api.rendering._PEOPLES", lambda _: frozenset({"user"})),
        (f"{RULES_API}::test_an_agent_is_told_that_a_rule_decided_and_nothing_of_which",),
    ),
)


class Same(str):
    """Equal to any digest."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


def _any_receipt(attempt: Any) -> Any:
    from interrupts.models import Receipt

    return Receipt.objects.filter(attempt=attempt.pk).first()


def _go_on_instead(work: Any, _: Any, interrupt: Any) -> None:
    _resume(work, interrupt)


def _resume(work: Any, interrupt: Any) -> None:
    from interrupts.models import Resolution, Step
    from interrupts.transitions import holds, steps
    from tenants.journal import SYSTEM

    step = Step.objects.get(pk=interrupt.step)
    steps.authorize(work, step, by="policy", rule="time", policy_version=1)
    holds.resolve(work, interrupt, Resolution.RESUME, by=SYSTEM)
