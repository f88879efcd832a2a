"""What is sealed opens at its own place, under the key it names, and unchanged."""

import pytest
from django.test import override_settings

from tenants.sealing import SealBroken, seal, unseal

OLD, NEW = bytes(32), bytes(range(32))


@pytest.fixture(autouse=True)
def keys() -> object:
    with override_settings(
        ABEYANCE_MASTER_KEYS={"old": OLD, "new": NEW}, ABEYANCE_CURRENT_KEY="old"
    ) as settings:
        yield settings


def test_it_opens_to_what_was_closed() -> None:
    for plain in (b"", b"x", b"secret" * 1000):
        assert unseal(seal(plain, "tool-secret", 1), "tool-secret", 1) == plain


def test_the_same_is_sealed_differently_each_time() -> None:
    one, other = (seal(b"secret", "tool-secret", 1) for _ in range(2))
    assert one != other
    assert b"secret" not in one


@pytest.mark.parametrize(("purpose", "place"), [("tool-secret", 2), ("content", 1), ("tool", 1)])
def test_it_opens_nowhere_else(purpose: str, place: int) -> None:
    with pytest.raises(SealBroken):
        unseal(seal(b"secret", "tool-secret", 1), purpose, place)


def test_places_do_not_run_together() -> None:
    with pytest.raises(SealBroken):
        unseal(seal(b"secret", "p", "a", "b"), "p", "ab")


def test_a_changed_byte_anywhere_breaks_it() -> None:
    sealed = seal(b"secret", "p", 1)
    for index in range(len(sealed)):
        broken = bytearray(sealed)
        broken[index] ^= 1
        with pytest.raises(SealBroken):
            unseal(bytes(broken), "p", 1)
    for end in range(len(sealed)):
        with pytest.raises(SealBroken):
            unseal(sealed[:end], "p", 1)


def test_a_key_that_is_current_no_more_still_opens_what_it_closed() -> None:
    sealed = seal(b"secret", "p", 1)
    with override_settings(ABEYANCE_CURRENT_KEY="new"):
        assert unseal(sealed, "p", 1) == b"secret"
        assert unseal(seal(b"newer", "p", 1), "p", 1) == b"newer"
    with (
        override_settings(ABEYANCE_MASTER_KEYS={"new": NEW}, ABEYANCE_CURRENT_KEY="new"),
        pytest.raises(SealBroken),
    ):
        unseal(sealed, "p", 1)
