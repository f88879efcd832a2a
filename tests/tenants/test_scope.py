"""Work is done for one tenant at a time, and for none by default."""

import threading

import pytest
from django.db import DatabaseError, connection, transaction

from tenants.models import Group, Membership
from tenants.scope import VARIABLE, NoTenant, current_tenant_id, tenant_scope
from tests.tenants.conftest import World


def variable() -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT coalesce(current_setting('{VARIABLE}', true), '')")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db
def test_a_query_outside_a_tenant_is_refused(acme: World) -> None:
    with pytest.raises(NoTenant):
        Membership.objects.count()
    with pytest.raises(NoTenant):
        Group(name="x")


@pytest.mark.django_db
def test_code_that_goes_around_the_scope_sees_and_writes_nothing(acme: World) -> None:
    assert Membership.unscoped.count() == 0
    with pytest.raises(DatabaseError), transaction.atomic():
        Group.unscoped.create(tenant_id=acme.id, name="x")
    with tenant_scope(acme.id):
        assert not Group.objects.exists()


@pytest.mark.django_db
def test_one_tenant_sees_and_writes_nothing_of_another(acme: World, umbrella: World) -> None:
    with tenant_scope(umbrella.id):
        theirs = Group.objects.create(name="theirs")
    with tenant_scope(acme.id):
        assert not Group.unscoped.filter(pk=theirs.pk).exists()
        assert Group.unscoped.filter(pk=theirs.pk).update(name="ours") == 0
        assert Group.unscoped.filter(pk=theirs.pk).delete()[0] == 0
        with pytest.raises(DatabaseError), transaction.atomic():
            Group.unscoped.create(tenant_id=umbrella.id, name="x")
    with tenant_scope(umbrella.id):
        assert list(Group.objects.values_list("name", flat=True)) == ["theirs"]


@pytest.mark.django_db
def test_the_variable_is_taken_off_whatever_happened(acme: World) -> None:
    with tenant_scope(acme.id):
        assert variable() == str(acme.id)
    assert variable() == ""
    with pytest.raises(ZeroDivisionError), tenant_scope(acme.id):
        raise ZeroDivisionError
    assert variable() == ""


@pytest.mark.django_db
def test_scopes_of_one_tenant_nest_and_of_two_do_not(acme: World, umbrella: World) -> None:
    with tenant_scope(acme.id):
        with tenant_scope(acme.id):
            pass
        assert variable() == str(acme.id)
        with pytest.raises(NoTenant), tenant_scope(umbrella.id):
            pass
        with pytest.raises(NoTenant), tenant_scope(umbrella.id, variable_set=True):
            pass
        assert variable() == str(acme.id)
        assert current_tenant_id() == acme.id


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_cannot_forget_its_tenant_is_closed(acme: World) -> None:
    with tenant_scope(acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
        other = connection.copy()
        with other.cursor() as another:
            another.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        other.close()
    assert connection.connection is None
    assert variable() == ""


@pytest.mark.django_db(transaction=True)
def test_a_thread_begins_without_a_tenant(acme: World) -> None:
    found: list[bool] = []

    def look() -> None:
        try:
            current_tenant_id()
        except NoTenant:
            found.append(True)

    with tenant_scope(acme.id):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [True]
