"""How a run is suspended, held against a second telling of the same definition."""

from __future__ import annotations

from itertools import groupby
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from interrupts.models import OPEN_STEPS, Effect, StepStatus, Suspension
from interrupts.suspension import Counts, StepFacts, count

GROUPS = [UUID(int=n) for n in range(3)]
facts = st.builds(
    StepFacts,
    group=st.sampled_from(GROUPS),
    status=st.sampled_from([status.value for status in StepStatus]),
    effect=st.sampled_from([effect.value for effect in Effect]),
    attempts=st.integers(0, 2),
    undo_wanted=st.booleans(),
)
steps = st.lists(facts, max_size=12)


def told_again(rows: list[StepFacts]) -> Counts:
    """The domain's words, one after the other."""
    partial = 0
    for _, members in groupby(sorted(rows, key=lambda row: row.group), key=lambda row: row.group):
        group = list(members)
        begun = any(
            row.status == "compensating" or (row.status == "succeeded" and row.undo_wanted)
            for row in group
        )
        effects = [row for row in group if row.effect != "read" and row.attempts > 0]
        one_succeeded = "succeeded" in {row.status for row in effects}
        settled = {
            "succeeded",
            "failed",
            "compensating",
            "compensated",
            "denied",
            "rejected",
            "revised",
            "cancelled",
        }
        another_is_not = any(row.status not in settled for row in group)
        partial += begun or (one_succeeded and another_is_not)
    return Counts(
        unknown=len([row for row in rows if row.status == "unknown"]),
        in_flight=len([row for row in rows if row.status == "executing"]),
        partial=partial,
    )


@given(steps)
def test_it_counts_what_the_definition_says(rows):
    assert count(rows) == told_again(rows)


@given(steps, st.randoms())
def test_the_order_of_the_steps_is_nothing_to_it(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert count(shuffled) == count(rows)


@given(steps)
def test_the_first_that_applies_is_shown(rows):
    counts = count(rows)
    order = [
        (counts.unknown, Suspension.UNKNOWN_OUTCOME),
        (counts.in_flight, Suspension.STILL_CANCELLING),
        (counts.partial, Suspension.PARTIALLY_COMPLETE),
        (1, Suspension.SAFELY_SUSPENDED),
    ]
    assert counts.suspension == next(name for number, name in order if number)


@given(steps, st.sampled_from(GROUPS), st.booleans())
def test_a_read_and_a_persons_answer_make_nothing_partly_done(rows, group, read):
    done = StepFacts(group, "succeeded", "read" if read else "irreversible", 1 if read else 0)
    assert count([*rows, done]) == count(rows)


@given(steps)
def test_safe_means_that_nothing_is_open_beside_what_was_done(rows):
    if count(rows).suspension != Suspension.SAFELY_SUSPENDED:
        return
    assert not {row.status for row in rows} & {"unknown", "executing", "compensating"}
    for row in rows:
        if row.status == "succeeded" and row.effect != "read" and row.attempts:
            assert not any(other.status in OPEN_STEPS for other in rows if other.group == row.group)


@given(steps, steps)
def test_groups_are_counted_apart(some, others):
    apart = [row._replace(group=UUID(int=row.group.int + 100)) for row in others]
    both, one, other = count([*some, *apart]), count(some), count(apart)
    assert both == Counts(*(a + b for a, b in zip(one, other, strict=True)))
