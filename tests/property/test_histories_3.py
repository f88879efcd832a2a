"""A fourth of the histories: the suite spreads files over its processes."""

import pytest

from tests.property.histories import hold_totals, run_histories


@pytest.mark.slow
@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_what_must_always_hold_holds_after_every_step_of_any_history(owner):
    hold_totals(run_histories(owner, 3))
