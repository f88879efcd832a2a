"""What waits for a person, in which order, by which filter; and what they decided."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection

from approvals import waiting
from tests.approvals.house import House
from tests.pages.browser import Page
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)


def headlines(page: Page) -> list[str]:
    return re.findall(r'class="t" href="[^"]+">([^<]+)</a>', page.html)


def ask(house: House, payment: str, tool: str = "payments.refund", **more: Any) -> Any:
    return house.ask(tool, {"payment": payment, "amount": "1"}, **more)


def named(house: House, name: str = "payments.refund", **more: Any) -> None:
    house.tool(name, headline="{payment}", **more)


def due_in(gate: Any, minutes: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE approvals_gate SET expires_at = now() + %s * interval '1 min' WHERE id = %s",
            [minutes, gate.pk],
        )


def test_only_what_one_may_decide_waits(house: House, browser_of: Open) -> None:
    named(house)
    named(house, "mail.send")
    house.grant("bob", "mail.*")
    ask(house, "refund")
    ask(house, "mail", "mail.send")
    ask(house, "for alice", run=house.run(requested_by="alice"))
    assert set(headlines(browser_of("alice").get("/inbox"))) == {"refund", "mail"}
    assert headlines(browser_of("bob").get("/inbox")) == ["mail"]
    assert "Nothing waits for you" in browser_of("vera").get("/inbox").text


def test_due_soonest_comes_first_then_the_highest_risk_then_the_oldest(
    house: House, browser_of: Open
) -> None:
    levels = {"low": {}, "medium": {"risk": "medium"}, "high": {"risk": "high"}}
    for name, more in {**levels, "never": {"effect": "irreversible"}}.items():
        named(house, f"tool.{name}", **more)
    for payment, tool in (
        ("a low", "low"),
        ("b medium", "medium"),
        ("c never", "never"),
        ("d high", "high"),
        ("e low", "low"),
        ("f due later", "high"),
        ("g due soon", "low"),
    ):
        gate = ask(house, payment, f"tool.{tool}")
        if "due" in payment:
            due_in(gate, 20 if "soon" in payment else 200)
    page = browser_of("alice").get("/inbox")
    order = ["g due soon", "f due later", "c never", "d high", "b medium", "a low", "e low"]
    assert headlines(page) == order
    assert "7 decisions. 1 is due within an hour." in page.text


def test_pages_hold_each_decision_once(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PAGE", 3)
    named(house)
    named(house, "other", risk="high")
    for number in range(8):
        gate = ask(house, f"n{number}", "other" if number % 3 else "payments.refund")
        if number % 2:
            due_in(gate, 100)
    browser = browser_of("alice")
    page, seen = browser.get("/inbox"), []
    while True:
        seen += headlines(page)
        onward = re.search(r'href="(\?[^"]+)">Next<', page.html)
        if onward is None:
            break
        page = browser.get("/inbox" + onward[1].replace("&amp;", "&"))
    assert sorted(seen) == [f"n{number}" for number in range(8)]
    assert "Back to the first" in page.text


@pytest.mark.parametrize("after", ["x", "", "AAAA", "%00", "x" * 5000])
def test_a_place_that_is_none_of_ours_is_the_first(
    house: House, browser_of: Open, after: str
) -> None:
    named(house)
    ask(house, "one")
    assert headlines(browser_of("alice").get(f"/inbox?after={after}")) == ["one"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("agent=bot", ["a", "b"]),
        ("agent=other", []),
        ("tool=mail.send", ["b"]),
        ("risk=low", ["a"]),
        ("risk=irreversible", ["b"]),
        ("risk=nonsense", ["a", "b"]),
        ("state=safely_suspended", ["a", "b"]),
        ("state=unknown_outcome", []),
        ("q=A", ["a"]),
        ("q=%25", []),
        ("q=a%00", ["a"]),
        ("tool=mail.send&risk=low", []),
    ],
)
def test_filters(house: House, browser_of: Open, query: str, found: list[str]) -> None:
    named(house)
    named(house, "mail.send", effect="irreversible")
    ask(house, "a")
    ask(house, "b", "mail.send")
    page = browser_of("alice").get(f"/inbox?{query}")
    assert page.status == 200
    assert sorted(headlines(page)) == found


def test_the_counters_tell_the_states_of_the_runs(house: House, browser_of: Open) -> None:
    named(house)
    run = house.run()
    house.propose(arguments={"payment": "a", "amount": "1"}, run=run)
    ask(house, "b")
    page = browser_of("alice").get("/inbox")
    assert re.search(r"2 ?Safely suspended", page.text)
    assert "state=safely_suspended" in page.html


def test_the_number_beside_the_list_is_capped(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST_SHOWN", 2)
    monkeypatch.setattr(waiting, "MOST_COUNTED", 3)
    named(house)
    browser = browser_of("alice")
    for number, shown in enumerate(("0", "1", "2", "2+")):
        assert f"Waiting for you {shown} " in browser.get("/decided").text
        ask(house, f"n{number}")
    assert "3 or more decisions." in browser.get("/inbox").text


def test_the_list_costs_the_same_statements_however_long_it_is(
    house: House, browser_of: Open
) -> None:
    named(house)
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    browser = browser_of("alice")

    def statements() -> int:
        with connection.execute_wrapper(counted := Counted()):
            browser.get("/inbox")
        return counted.number

    house.decide("carol", ask(house, "first"))
    few = statements()
    for number in range(12):
        house.decide("carol", ask(house, f"n{number}"))
    assert statements() == few


class Counted:
    """How many statements were made while it wrapped them."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, execute: Any, *given: Any) -> Any:
        self.number += 1
        return execute(*given)


def test_the_quorum_stands_beside_each(house: House, browser_of: Open) -> None:
    named(house)
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    house.decide("carol", ask(house, "a"))
    browser = browser_of("alice")
    assert "1 of 2 approved" in browser.get("/inbox").text
    house.grant("carol")
    assert "0 of 2 approved" in browser.get("/inbox").text


def test_what_was_decided_is_listed_the_latest_first(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PAGE", 2)
    named(house)
    for payment in ("one", "two", "three"):
        house.decide("alice", ask(house, payment), "reject", reason="no")
    house.decide("carol", ask(house, "hers"), "reject", reason="no")
    browser = browser_of("alice")
    first = browser.get("/decided")
    found = re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)<', first.html)
    assert found == ["three", "two"]
    onward = re.search(r'href="(\?[^"]+)">Older<', first.html)
    assert onward is not None
    assert "one" in browser.get("/decided" + onward[1]).text
    assert "hers" not in first.html
    assert browser.get("/decided?before=nonsense").status == 200


def test_looking_at_lists_changes_nothing(house: House, browser_of: Open) -> None:
    named(house)
    house.decide("alice", ask(house, "old"))
    ask(house, "a")
    browser = browser_of("alice")
    with nothing_changes():
        for path in ("/inbox", "/inbox?state=safely_suspended", "/decided"):
            assert browser.get(path).status == 200
