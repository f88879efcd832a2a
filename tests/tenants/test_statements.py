"""Statements that go around Django's cursors are Django's own connection's, and fail as they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID, uuid4

import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, transaction

from tenants import statements
from tenants.models import Group
from tenants.scope import tenant_scope
from tenants.statements import Statement, prepared, prepared_rows, together
from tests.database import end_backend
from tests.tenants.conftest import World

ONE = Statement("SELECT 1")
BY_ZERO = Statement("SELECT 1 / %b::integer", [0])


def making(name: str, tenant: UUID) -> Statement:
    return Statement(
        "INSERT INTO tenants_group (id, tenant_id, name) VALUES (%b::uuid, %b::uuid, %b::text)",
        [uuid4(), tenant, name],
    )


def groups(world: World) -> list[str]:
    with tenant_scope(world.id):
        return sorted(Group.objects.values_list("name", flat=True))


@pytest.mark.django_db
def test_values_come_back_as_they_were_given() -> None:
    given = [uuid4(), "ä", b"\x00\xff", 7, None, True, 1.5]
    text = "SELECT %b::uuid, %b::text, %b::bytea, %b::integer, %b::text, %b::boolean, %b::float8"
    assert list(prepared(text, given)) == given
    assert [list(row) for row in together(Statement(text, given), ONE)] == [given, [1]]
    assert prepared_rows("SELECT generate_series(1, %b::integer)", [3]) == [(1,), (2,), (3,)]
    assert prepared_rows("SELECT 1 WHERE false", []) == []


@pytest.mark.django_db
def test_no_row_is_an_empty_one() -> None:
    assert prepared("SELECT 1 WHERE false", []) == ()
    assert together(Statement("SELECT 1 WHERE false"), ONE) == [(), (1,)]


@pytest.mark.django_db
def test_a_failing_statement_is_django_s_error_and_the_connection_goes_on() -> None:
    with pytest.raises(DataError), transaction.atomic():
        prepared(*BY_ZERO)
    with pytest.raises(DataError), transaction.atomic():
        together(ONE, BY_ZERO, ONE)
    assert together(ONE, ONE) == [(1,), (1,)]


@pytest.mark.django_db(transaction=True)
def test_where_one_of_several_fails_none_is_done(acme: World) -> None:
    with tenant_scope(acme.id), pytest.raises(DataError):
        together(making("before", acme.id), BY_ZERO, making("after", acme.id))
    assert groups(acme) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "send",
    [lambda one: prepared(*one), lambda one: together(one, ONE)],
    ids=["alone", "together"],
)
def test_what_is_sent_in_a_transaction_of_django_s_stands_or_falls_with_it(
    acme: World, send: Callable[[Statement], object]
) -> None:
    made = making("made", acme.id)
    returning = Statement(f"{made.text} RETURNING 1", made.parameters)
    with tenant_scope(acme.id):
        with suppress(ZeroDivisionError), transaction.atomic():
            send(returning)
            raise ZeroDivisionError
        assert not Group.objects.exists()
        with transaction.atomic():
            send(returning)
    assert groups(acme) == ["made"]


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_is_refused_is_no_success(acme: World) -> None:
    nobody = uuid4()  # the reference to a tenant is looked at when the transaction ends
    with tenant_scope(nobody), pytest.raises(IntegrityError):
        together(making("of nobody", nobody), ONE)
    with tenant_scope(nobody), pytest.raises(IntegrityError):
        prepared(*making("of nobody", nobody))
    assert groups(acme) == []


@pytest.mark.django_db(transaction=True)
def test_a_connection_lost_on_the_way_is_an_error_and_the_next_one_works() -> None:
    for send in (lambda: prepared(*ONE), lambda: together(ONE, ONE)):
        connection.ensure_connection()
        end_backend(connection.connection.info.backend_pid)
        with pytest.raises(OperationalError):
            send()
        connection.close()
        assert together(ONE) == [(1,)]


@pytest.mark.django_db(transaction=True)
def test_a_kept_connection_that_the_server_ended_is_replaced_at_the_next_request() -> None:
    connection.ensure_connection()
    end_backend(connection.connection.info.backend_pid)
    connection.health_check_enabled, connection.health_check_done = True, False
    assert together(ONE, ONE) == [(1,), (1,)]


@pytest.mark.django_db(transaction=True)
def test_a_tenant_is_set_on_the_connection_that_takes_the_place_of_one_that_was_lost(
    acme: World,
) -> None:
    connection.ensure_connection()
    end_backend(connection.connection.info.backend_pid)
    connection.health_check_enabled, connection.health_check_done = True, False
    with tenant_scope(acme.id):
        assert prepared("SELECT current_setting('abeyance.tenant_id')", []) == (str(acme.id),)


@pytest.mark.django_db
def test_a_name_that_may_be_taken_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(*_: object) -> None:
        raise KeyboardInterrupt  # a signal, once the server had prepared it

    prepared(*ONE)  # the transaction has begun
    statement = Statement("SELECT 'prepared and not known'")
    with monkeypatch.context() as patch:
        patch.setattr(statements, "_done", broken_off)
        with pytest.raises(KeyboardInterrupt):
            prepared(*statement)
    assert prepared(*statement) == ("prepared and not known",)


@pytest.mark.django_db
def test_large_bodies_pass_both_ways() -> None:
    body = b"x" * 3_000_000
    echo = Statement("SELECT %b::bytea", [body])
    assert together(echo, echo, ONE) == [(body,), (body,), (1,)]


@pytest.mark.django_db
@pytest.mark.parametrize("together_with", [0, 1])
def test_other_threads_go_on_while_the_server_is_waited_for(together_with: int) -> None:
    went_on = threading.Event()
    threading.Timer(0.05, went_on.set).start()
    sleeping = Statement("SELECT pg_sleep(%b::float8) IS NULL", [0.5])
    if together_with:
        together(sleeping, ONE)
    else:
        prepared(*sleeping)
    assert went_on.is_set()
