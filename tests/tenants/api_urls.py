"""A small API on the request infrastructure, to test it by."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.urls import include, path

from config.errors import DomainError
from tenants.api.answers import answer, etag, nothing
from tenants.api.body import INSTANT, MONEY, members, nullable, text
from tenants.api.http import WAIT_QUERY, waiting
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer, holds_transaction
from tenants.models import Agent, Group
from tenants.scope import current_tenant_id

GROUP = members(
    {"name": text(100, least=1)},
    {"cost": MONEY, "until": nullable(INSTANT), "refuse": {"type": "boolean"}},
)


class Refused(DomainError):
    """The group is refused."""

    code = "group-refused"


def shown(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [{"id": group.pk, "name": group.name} for group in groups]


class Groups(TenantView):
    @operation("List the groups", query=CURSOR_QUERY)
    def get(self, call: ApiCall) -> Answer:
        return page(call.request, Group.objects.all(), shown)

    @operation("Make a group", body=GROUP, answers={201: {}})
    def post(self, call: ApiCall) -> Answer:
        if call.body.get("refuse"):
            Group.objects.get_or_create(name="recorded")
            raise Refused
        group = Group.objects.create(name=call.body["name"])
        return answer({"id": group.pk, "name": group.name}, 201, etag(1))


class OneGroup(TenantView):
    subject = Group

    @operation("Show a group", query=WAIT_QUERY)
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        group = Group.objects.get(pk=pk)
        return answer({"name": group.name}, headers={**etag(7), **waiting(call, pk, 7)})

    @operation("Remove a group", who="people", roles={"admin", "operator"})
    def delete(self, _call: ApiCall, pk: UUID) -> Answer:
        Group.objects.get(pk=pk).delete()
        return nothing()

    @operation("Rename a group", who="people", body=GROUP, versioned=True)
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        group = Group.objects.get(pk=pk)
        call.if_match.check(7)
        group.name = call.body["name"]
        group.save()
        return answer({"name": call.body["name"]})


class Agents(TenantView):
    @operation("Say who asks", who="agents")
    def get(self, call: ApiCall) -> Answer:
        return answer({"agents": Agent.objects.count(), "name": call.principal.name})


class Apart(TenantView):
    """A path whose service opens its own transaction."""

    @operation("Make a group", body=GROUP, own_transaction=True)
    def post(self, call: ApiCall) -> Answer:
        assert not holds_transaction()
        return answer(shown([Group.objects.create(name=call.body["name"])])[0], 201)


class Looking(TenantView):
    @operation("Look", changes=False)
    def post(self, _call: ApiCall) -> Answer:
        return answer({"tenant": str(current_tenant_id())})


class Failing(TenantView):
    @operation("Fail")
    def get(self, _call: ApiCall) -> Answer:
        raise RuntimeError("the database password is hunter2")

    @operation("Lose the connection")
    def post(self, _call: ApiCall) -> Answer:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return nothing()


api = [
    path("groups", Groups.as_view()),
    path("groups/<id:pk>", OneGroup.as_view()),
    path("agents", Agents.as_view()),
    path("apart", Apart.as_view()),
    path("looking", Looking.as_view()),
    path("failing", Failing.as_view()),
    path("", include("tenants.api.urls")),
]
urlpatterns = [path("api/v1/", include(api))]
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"
