"""The bounded memory of compiled things."""

from config.memo import Memo


def test_a_thing_is_made_once_under_its_key() -> None:
    memo: Memo[object] = Memo(2)
    first = memo.get(1, object)
    assert memo.get(1, object) is first
    assert memo.get(2, object) is not first


def test_the_oldest_thing_is_forgotten_beyond_the_bound() -> None:
    memo: Memo[object] = Memo(2)
    first, second = memo.get(1, object), memo.get(2, object)
    memo.get(3, object)
    assert memo.get(2, object) is second
    assert memo.get(1, object) is not first
