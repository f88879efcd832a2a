"""A third party's checker edits what is stored; each edit is rejected or reported, none accepted."""

import pytest
from agmi import check

from interrupts import anchors
from tests.conformance import agmi

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
EDITS = [
    "T1 content tamper",
    "T2 tail truncation",
    "T3 middle deletion",
    "T4 reordering",
    "T5 forged insertion",
    "T6 cross-context replay",
    "T7 rollback replay",
    "T8 metadata tamper",
    "T9 snapshot rollback",
]


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch):
    monkeypatch.setattr("interrupts.queue.send", lambda *_: None)


@pytest.mark.parametrize("adapter", ["Journals", "Receipts"])
def test_an_audit_reports_each_edit_and_the_clean_store_before_it_verifies(adapter):
    rows = check.run(check.load_adapter(f"tests.conformance.agmi:{adapter}"))
    assert [(row["edit"], row["verdict"]) for row in rows] == [
        (edit, "REPORTED") for edit in EDITS
    ], rows


def test_nothing_that_was_edited_is_resumed():
    rows = check.run(agmi.Resumed())
    assert [(row["edit"], row["verdict"]) for row in rows] == [
        *((edit, "REJECTED") for edit in EDITS[:-1]),
        (EDITS[-1], "NOT EVALUABLE"),  # only the anchor shows it, which is the audit's
    ], rows


def test_what_was_put_back_is_told_also_once_it_has_grown_past_what_was_lost():
    store = agmi.Receipts()
    store.setup()
    try:
        store.seed(2)
        older = store.snapshot_store()
        store.append_genuine()
        store.restore_store(older)
        store.reload()
        for _ in range(3):
            store.append_genuine()
        assert not store.verify()
        assert "is in the anchor and not in the database" in store.verify_detail
    finally:
        store.teardown()


def test_an_anchor_whose_last_write_broke_off_goes_on():
    store = agmi.Receipts()
    store.setup()
    try:
        store.seed(1)
        with anchors.path().open("a") as file:
            file.write('["0191e4d0-')
        store.append_genuine()
        heads = [head for mine in anchors.read().values() for head in mine]
        assert store.run.pk in {head.stream for head in heads}
        assert max(head.seq for head in heads if head.stream == store.run.pk) > 7
        assert store.verify()
    finally:
        store.teardown()
