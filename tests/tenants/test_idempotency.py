"""A request sent twice under one key is worked once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.test import Client

from tenants import idempotency
from tenants.idempotency import holds_transaction, once, store_answer_within_transaction
from tenants.models import Group, IdempotentAnswer
from tenants.scope import tenant_scope
from tenants.sealing import SealBroken
from tests.tenants.conftest import World
from tests.tenants.test_api_requests import as_, names, send

pytestmark = [pytest.mark.urls("tests.tenants.api_urls")]
KEY = {"Idempotency_Key": "k-1"}


@pytest.fixture(params=["groups", "apart"])
def path(request: pytest.FixtureRequest) -> str:
    """Both ways: the request's own transaction, and one that the service opens."""
    return str(request.param)


@pytest.mark.django_db
def test_the_first_answer_is_sent_again(client: Client, acme: World, path: str) -> None:
    first = send(client, "POST", path, {"name": "x"}, **KEY, **as_(acme, "agent"))
    again = send(client, "POST", path, raw=b'{ "name":\n"x" }', **KEY, **as_(acme, "agent"))
    assert first[:2] == again[:2]
    assert first[0] == 201
    assert "Idempotent-Replayed" not in first[2].headers
    assert again[2].headers["Idempotent-Replayed"] == "true"
    assert again[2].headers.get("ETag") == first[2].headers.get("ETag")
    assert names(acme) == ["x"]


@pytest.mark.django_db
def test_another_request_under_the_key_is_refused(client: Client, acme: World, path: str) -> None:
    other = "apart" if path == "groups" else "groups"
    send(client, "POST", path, {"name": "x"}, **KEY, **as_(acme, "agent"))
    for where, body in ((path, {"name": "y"}), (other, {"name": "x"})):
        status, told, _ = send(client, "POST", where, body, **KEY, **as_(acme, "agent"))
        assert (status, told["code"]) == (422, "idempotency-key-reused")
    assert names(acme) == ["x"]


@pytest.mark.django_db
def test_a_key_is_its_callers(client: Client, acme: World, umbrella: World, path: str) -> None:
    for world, who in ((acme, "agent"), (acme, "bob"), (umbrella, "agent")):
        assert send(client, "POST", path, {"name": who}, **KEY, **as_(world, who))[0] == 201
    assert names(acme) == ["agent", "bob"]
    assert names(umbrella) == ["agent"]


@pytest.mark.django_db
def test_a_refusal_is_not_kept_and_may_be_tried_again(client: Client, acme: World) -> None:
    refused = {"name": "x", "refuse": True}
    for _ in range(2):
        status, body, _ = send(client, "POST", "groups", refused, **KEY, **as_(acme, "agent"))
        assert (status, body["code"]) == (409, "group-refused")
    assert names(acme) == ["recorded"]  # what the refusal wrote down stays
    assert send(client, "POST", "groups", {"name": "y"}, **KEY, **as_(acme, "agent"))[0] == 201
    assert names(acme) == ["recorded", "y"]


@pytest.mark.django_db
def test_a_replay_comes_before_the_version_is_looked_at(client: Client, acme: World) -> None:
    with tenant_scope(acme.id):
        group = Group.objects.create(name="x")
    url = f"groups/{group.pk}"
    first = send(client, "POST", url, {"name": "y"}, If_Match='"7"', **KEY, **as_(acme, "bob"))
    again = send(client, "POST", url, {"name": "y"}, If_Match='"6"', **KEY, **as_(acme, "bob"))
    assert (first[0], again[0]) == (200, 200)


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_is_none_is_refused(client: Client, acme: World, key: str) -> None:
    headers = {"Idempotency_Key": key, **as_(acme, "agent")}
    status, body, _ = send(client, "POST", "groups", {"name": "x"}, **headers)
    assert (status, body["code"]) == (422, "invalid-header")
    assert names(acme) == []


@pytest.mark.django_db
def test_a_key_of_255_characters_is_taken(client: Client, acme: World) -> None:
    for _ in range(2):
        headers = {"Idempotency_Key": "x" * 255, **as_(acme, "agent")}
        assert send(client, "POST", "groups", {"name": "x"}, **headers)[0] == 201
    assert names(acme) == ["x"]


@pytest.mark.django_db
def test_what_is_kept_cannot_be_read_in_the_database(client: Client, acme: World) -> None:
    send(client, "POST", "groups", {"name": "4242 4242"}, **KEY, **as_(acme, "agent"))
    with tenant_scope(acme.id):
        kept = IdempotentAnswer.objects.get()
    assert b"4242" not in bytes(kept.body)


def make_and_fail() -> None:
    with once("user:x", "k", b"f"):
        Group.objects.create(name="x")
        store_answer_within_transaction(201, {}, "{}")
        raise ZeroDivisionError


@pytest.mark.django_db(transaction=True)
def test_the_answer_stands_or_falls_with_what_it_names(acme: World) -> None:
    with tenant_scope(acme.id):
        with pytest.raises(ZeroDivisionError):
            make_and_fail()
        assert not IdempotentAnswer.objects.exists()
        assert not Group.objects.exists()
        with once("user:x", "k", b"f") as pending:
            assert pending.first is None
            assert holds_transaction()
        assert not holds_transaction()


@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_a_second_answer_under_a_key(acme: World) -> None:
    with tenant_scope(acme.id):
        with once("user:x", "k", b"f"):
            store_answer_within_transaction(201, {}, "{}")
        with pytest.raises(IntegrityError), transaction.atomic():
            IdempotentAnswer.objects.create(
                caller="user:x", key="k", fingerprint=b"f", status=201, body=b""
            )


@pytest.mark.django_db(transaction=True)
def test_the_same_key_twice_at_once_is_refused_at_once(
    acme: World, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    working, go_on = threading.Event(), threading.Event()
    create = Group.objects.create

    def slowly(**values: Any) -> Group:
        working.set()
        assert go_on.wait(20)
        return create(**values)

    monkeypatch.setattr("tests.tenants.api_urls.Group.objects.create", slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(in_thread, lambda: post(acme, path))
        assert working.wait(20)
        status, body, _ = pool.submit(in_thread, lambda: post(acme, path)).result(5)
        assert (status, body["code"]) == (409, "request-in-progress")
        go_on.set()
        assert first.result(20)[0] == 201
        again = pool.submit(in_thread, lambda: post(acme, path)).result(20)
    assert again[0] == 201
    assert again[2].headers["Idempotent-Replayed"] == "true"
    assert names(acme) == ["x"]


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_is_worked(acme: World, path: str) -> None:
    barrier = threading.Barrier(8)

    def at_once() -> int:
        barrier.wait(20)
        return int(post(acme, path)[0])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: in_thread(at_once), range(8)))
    assert set(found) <= {201, 409}
    assert 201 in found
    assert names(acme) == ["x"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_key_whose_answer_cannot_be_read_is_not_held(
    acme: World, monkeypatch: pytest.MonkeyPatch, in_transaction: bool
) -> None:
    def broken(*_: object) -> bytes:
        raise SealBroken

    def again() -> bool:
        with tenant_scope(acme.id), once("user:x", "k", b"f") as pending:
            return pending.first is not None

    with tenant_scope(acme.id):
        with once("user:x", "k", b"f"):
            store_answer_within_transaction(201, {}, "{}")
        with monkeypatch.context() as patch:
            patch.setattr(idempotency, "unseal", broken)
            with pytest.raises(SealBroken):
                hold(in_transaction)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_thread, again).result(20)


def hold(in_transaction: bool) -> None:
    with once("user:x", "k", b"f", in_transaction=in_transaction):
        pass


def hold_and_die() -> None:
    with once("user:x", "k", b"f", in_transaction=False), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.django_db(transaction=True)
def test_a_key_is_free_again_when_its_connection_dies(acme: World) -> None:
    with tenant_scope(acme.id), pytest.raises(OperationalError):
        hold_and_die()
    connection.close()
    with tenant_scope(acme.id), once("user:x", "k", b"f") as pending:
        assert pending.first is None


@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_answers_are_kept_for_24_hours_and_then_removed(acme: World, umbrella: World) -> None:
    for world in (acme, umbrella):
        with tenant_scope(world.id):
            for key, age in (("young", "23 hours"), ("old", "25 hours")):
                with once("user:x", key, b"f"):
                    store_answer_within_transaction(201, {}, "{}")
                with connection.cursor() as cursor:
                    cursor.execute(
                        "UPDATE tenants_idempotentanswer SET created_at = now() - %s::interval"
                        " WHERE key = %s",
                        [age, key],
                    )
    assert idempotency.sweep_answers() == 2
    assert idempotency.sweep_answers() == 0
    for world in (acme, umbrella):
        with tenant_scope(world.id):
            assert [one.key for one in IdempotentAnswer.objects.all()] == ["young"]


def post(world: World, path: str) -> tuple[int, Any, Any]:
    return send(Client(), "POST", path, {"name": "x"}, **KEY, **as_(world, "agent"))


def in_thread(work: Callable[[], Any]) -> Any:
    """Run in a pool's thread, whose database connections end with the work."""
    try:
        return work()
    finally:
        connections.close_all()
