import time

from tenants.ids import uuid7


def test_ids_of_a_process_sort_as_they_were_made() -> None:
    ids = [uuid7() for _ in range(5000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 5000


def test_an_id_is_a_version_7_uuid_of_its_millisecond() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert before <= made.int >> 80 <= after + 2
