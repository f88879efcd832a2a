"""The demo's far end: nothing twice under one key, faults as ordered, and strangers turned away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from demo.far_end.__main__ import world
from demo.far_end.faults import MODES
from demo.far_end.server import Server
from demo.places import Places

SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
REFUND = {"payment": "pay-1003", "amount": "4.50", "customer": "Amara Okafor"}


class Shop:
    """The far end, called as the service calls it: signed with the tool's secret."""

    def __init__(self, server: Server, places: Places) -> None:
        self.url, self.places = server.url, places
        self.merchant = {"Authorization": f"Bearer {places.merchant_key.read_text().strip()}"}

    def call(
        self, path: str, body: Any = None, key: str | None = None, **changed: str
    ) -> httpx.Response:
        raw = b"" if body is None else json.dumps(body).encode()
        now = datetime.now(UTC)
        headers = {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(SECRET).sign("msg_1", now, raw.decode()),
            **({"Idempotency-Key": key} if key else {}),
            **changed,
        }
        method = "GET" if body is None else "POST"
        return httpx.request(method, f"{self.url}{path}", content=raw, headers=headers)

    def refund(self, key: str | None, **arguments: str) -> httpx.Response:
        return self.call("/tools/payments.refund", {"arguments": REFUND | arguments}, key)

    def order(self, mode: str, **more: Any) -> httpx.Response:
        fault = {"tool": "payments.refund", "mode": mode, **more}
        return httpx.post(f"{self.url}/faults", json=fault, headers=self.merchant)

    @property
    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx.get(f"{self.url}/ledger").json()["entries"]
        return found

    @property
    def page(self) -> str:
        return httpx.get(self.url).text


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places(tmp_path)
    tools = dict.fromkeys(["payments.refund", "orders.get", "notes.add"], SECRET)
    found.credentials.write_text(json.dumps({"acme": {"tools": tools}}))
    return found


@pytest.fixture
def shop(places: Places) -> Iterator[Shop]:
    with serving(places) as found:
        yield found


class serving:  # noqa: N801 - used as a function
    def __init__(self, places: Places) -> None:
        self.places = places

    def __enter__(self) -> Shop:
        self.server = Server(0, world(self.places))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return Shop(self.server, self.places)

    def __exit__(self, *_exc: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_one_key_is_one_effect_and_one_answer(shop: Shop) -> None:
    first, again = shop.refund("k-1"), shop.refund("k-1")
    assert (first.status_code, first.json()) == (200, again.json())
    assert first.json()["result"] == {"refunded": "4.50", "payment": "pay-1003"}
    assert [one["key"] for one in shop.entries] == ["k-1"]


def test_one_key_at_once_is_one_effect(shop: Shop) -> None:
    threads = [threading.Thread(target=shop.refund, args=["k-1"]) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(shop.entries) == 1


def test_without_a_key_once_more_is_once_more(shop: Shop) -> None:
    shop.refund(None)
    shop.refund(None)
    assert len(shop.entries) == 2


def test_what_was_performed_outlives_the_process(places: Places) -> None:
    with serving(places) as shop:
        answer = shop.refund("k-1").json()
    with places.ledger.open("a") as file:
        file.write('{"number": 2, "at": "cut o')
    with serving(places) as shop:
        assert shop.refund("k-1").json() == answer
        assert [one["number"] for one in shop.entries] == [1]
        assert shop.refund("k-2").status_code == 200
    with serving(places) as shop:
        assert [one["number"] for one in shop.entries] == [1, 2]


def test_a_key_can_be_asked_about(shop: Shop) -> None:
    asked = shop.call("/tools/payments.refund/k-1")
    assert (asked.status_code, asked.json()) == (404, {"outcome": "not_performed"})
    shop.refund("k-1")
    asked = shop.call("/tools/payments.refund/k-1")
    assert (asked.status_code, asked.json()["outcome"]) == (200, "performed")
    assert asked.json()["external_id"] == "shop-1"


def test_an_effect_is_taken_back_once(shop: Shop) -> None:
    shop.refund("k-1")
    for _ in range(2):
        path = "/tools/payments.refund/k-1/compensate"
        assert shop.call(path, {"arguments": REFUND}, "k-1:compensate").status_code == 200
    assert [one["undoes"] for one in shop.entries] == [None, "shop-1"]
    order = shop.call("/tools/orders.get", {"arguments": {"order": "o-1003"}})
    assert order.json()["result"]["refunded"] == "0"
    path = "/tools/payments.refund/k-9/compensate"
    assert shop.call(path, {"arguments": REFUND}, "k-9:compensate").status_code == 422


def test_a_preview_says_what_would_change_and_changes_nothing(shop: Shop) -> None:
    path = "/tools/payments.refund/preview"
    shown = shop.call(path, {"tool": "payments.refund", "arguments": REFUND}).json()
    assert shown["changes"] == [
        {"object": "payment pay-1003, refunded", "before": "0.00 EUR", "after": "4.50 EUR"}
    ]
    assert shown["warnings"] == []
    assert shop.entries == []
    shop.refund("k-1", amount="14.50")
    assert len(shop.call(path, {"arguments": REFUND}).json()["warnings"]) == 2


@pytest.mark.parametrize(
    ("mode", "performed"),
    [("lost_answer", 1), ("lost_request", 0), ("refuse", 0), ("busy", 0), ("error", 1)],
)
def test_a_fault_comes_as_ordered_and_as_often(shop: Shop, mode: str, performed: int) -> None:
    assert shop.order(mode).status_code == 201
    assert MODES[mode] in shop.page
    if mode.startswith("lost"):
        with pytest.raises(httpx.TransportError):
            shop.refund("k-1")
    else:
        assert shop.refund("k-1").status_code == {"refuse": 422, "busy": 429, "error": 500}[mode]
    assert len(shop.entries) == performed
    assert "None." in shop.page
    assert shop.refund("k-1").status_code == 200
    assert len(shop.entries) == 1


def test_a_fault_meets_only_the_calls_it_names(shop: Shop) -> None:
    shop.order("refuse", match={"payment": "pay-1006"})
    assert shop.refund("k-1").status_code == 200
    assert shop.refund("k-2", payment="pay-1006").status_code == 422
    assert shop.refund("k-3", payment="pay-1006").status_code == 200


def test_a_call_that_can_not_be_asked_about_stays_so(shop: Shop) -> None:
    shop.order("lost_answer", lookups=False)
    with pytest.raises(httpx.TransportError):
        shop.refund("k-1")
    assert shop.call("/tools/payments.refund/k-1").status_code == 503
    assert [one["key"] for one in shop.entries] == ["k-1"]


@pytest.mark.parametrize(
    "fault", [{"mode": "explode"}, {"mode": "busy", "when": "now"}, {"mode": "busy", "times": "x"}]
)
def test_a_fault_that_there_is_not_is_refused(shop: Shop, fault: dict[str, Any]) -> None:
    assert shop.order(**fault).status_code == 422
    assert shop.refund("k-1").status_code == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-signature": "v1,AAAA"},
        {"webhook-timestamp": "1000000000"},
        {"webhook-signature": ""},
        {"Authorization": "Bearer shop_guessed", "webhook-signature": ""},
    ],
)
def test_strangers_are_turned_away(shop: Shop, changed: dict[str, str]) -> None:
    answer = shop.call("/tools/payments.refund", {"arguments": REFUND}, "k-1", **changed)
    assert answer.status_code == 401
    assert shop.entries == []


def test_the_shops_own_key_is_let_in_and_named(shop: Shop) -> None:
    body = {"arguments": REFUND}
    answer = httpx.post(f"{shop.url}/tools/payments.refund", json=body, headers=shop.merchant)
    assert answer.status_code == 200
    assert shop.entries[0]["caller"] == "merchant key"
    assert shop.places.merchant_key.stat().st_mode & 0o077 == 0


def test_faults_are_ordered_with_the_shops_key_only(shop: Shop) -> None:
    fault = {"tool": "payments.refund", "mode": "refuse"}
    assert httpx.post(f"{shop.url}/faults", json=fault).status_code == 401
    assert shop.refund("k-1").status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/tools/payments.refund", {"arguments": {"amount": "1.00"}}, 422),
        ("/tools/payments.refund", {"arguments": REFUND | {"payment": "pay-1"}}, 422),
        ("/tools/payments.refund", [], 422),
        ("/tools/orders.get", {"arguments": {"order": "o-1"}}, 422),
        ("/tools/orders.get", {}, 422),
        ("/elsewhere", {}, 404),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(
    shop: Shop, path: str, body: Any, status: int
) -> None:
    assert shop.call(path, body, "k-1").status_code == status
    assert shop.entries == []


def test_the_page_tells_what_happened(shop: Shop) -> None:
    assert "nothing yet" in shop.page
    shop.refund("k-1")
    shop.call("/tools/notes.add", {"arguments": {"order": "o-1003", "text": "hello"}}, "k-2")
    assert "4.50 EUR of pay-1003" in shop.page
    assert "o-1003: hello" in shop.page
    assert httpx.get(shop.url).headers["content-type"].startswith("text/plain")
