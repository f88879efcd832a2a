"""What people want to be told, and what admins see to."""

import pytest

from approvals.services.notices import Wishes, set_wishes, wishes_of
from interrupts.models import Run
from tests.approvals.house import empty_house, house
from tests.interrupts.house import nothing_changes
from tests.pages.runs import Browser, text_of

__all__ = ["empty_house", "house"]


@pytest.fixture
def stuck(house):
    """A gate that nobody may decide."""
    for name in ("alice", "carol"):
        house.grant(name)
    return house.ask()


def test_wishes_are_kept_for_the_person_alone(house):
    alice = Browser(house, "alice")
    page = alice.get("/notices")
    assert page.count(" checked") == 8
    assert alice.post("/notices", page, reminders="on", outcomes="on") == "/notices?kept=1"
    gone = ("asked", "votes", "expiries", "answers", "interrupts", "rules")
    kept = Wishes(**dict.fromkeys(gone, False))
    assert wishes_of(house.people["alice"].id) == kept
    assert wishes_of(house.people["bob"].id) == Wishes()
    assert "Kept." in text_of(alice.get("/notices?kept=1"))


def test_looking_at_wishes_changes_nothing(house):
    set_wishes(house.people["alice"], Wishes(asked=False))
    alice = Browser(house, "alice")
    with nothing_changes():
        assert alice.get("/notices").count(" checked") == 7
        assert alice.client.post("/notices").status_code == 403


def test_only_who_settles_is_offered_what_is_to_be_settled(house):
    for who, offered in (("alice", 0), ("olga", 1), ("ada", 1)):
        assert Browser(house, who).get("/notices").count('name="recoveries"') == offered
    alice = Browser(house, "alice")
    alice.post("/notices", alice.get("/notices"), asked="on")
    assert wishes_of(house.people["alice"].id).recoveries


def test_a_link_of_a_mail_leads_through_sign_in(house):
    gate = house.ask()
    alice = Browser(house, "alice")
    alice.client.logout()
    with nothing_changes():
        answer = alice.client.get(f"/decisions/{gate.pk}")
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/sign-in?next=")


@pytest.mark.parametrize("path", ["/inbox", "/runs"])
def test_admins_see_that_something_can_be_decided_by_nobody(house, stuck, path):
    assert "Nobody may decide 1" in text_of(Browser(house, "ada").get(path))
    assert "Nobody may decide" not in text_of(Browser(house, "olga").get(path))
    assert stuck.undecidable_at is not None


def test_it_is_listed_with_what_can_be_done(house, stuck):
    page = Browser(house, "ada").get("/undecidable")
    assert f'href="/decisions/{stuck.pk}"' in page
    assert f'href="/runs/{stuck.run_id}#stop"' in page


@pytest.mark.parametrize("who", ["olga", "alice", "vera"])
def test_only_admins_are_shown_the_list(house, stuck, who):
    page = Browser(house, who).get("/undecidable", status=403)
    assert str(stuck.pk) not in page


def test_the_decision_and_the_journal_say_so_and_an_admin_may_cancel(house, stuck):
    ada = Browser(house, "ada")
    assert "Nobody may decide this" in text_of(ada.get(f"/decisions/{stuck.pk}"))
    page = ada.get(f"/runs/{stuck.run_id}")
    assert "nobody may decide this: its admins are told" in text_of(page)
    ada.post(f"/runs/{stuck.run_id}/cancel", page, done="leave")
    assert Run.objects.get(pk=stuck.run_id).status == "cancelled"
    assert "Somebody may decide everything" in text_of(ada.get("/undecidable"))
