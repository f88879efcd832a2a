"""A third of the cases: the suite spreads files over its processes."""

import pytest

from tests.crashes.cases import CASES
from tests.crashes.trials import all_or_nothing, trial

__all__ = ["trial"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
@pytest.mark.parametrize("case", list(CASES)[2::3])
def test_killed_at_any_commit_all_of_it_is_there_or_none_and_it_is_done_once(case, trial):
    all_or_nothing(case, trial)
