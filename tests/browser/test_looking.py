"""Looking changes nothing: every path of the running service, asked by who is signed in."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final
from uuid import uuid4

import httpx
import psycopg
import pytest
from abeyance import Abeyance
from django.urls import URLPattern, URLResolver, get_resolver
from psycopg import sql

from config.database import NAME
from config.supervisor.paths import DataFolder
from config.supervisor.postgres import PORT
from demo.service import Service
from tests.browser.desk import Desk
from tests.live import eventually, live

pytestmark = pytest.mark.slow
# The sweep's rounds, and how far decisions were collected, are noted by the service itself.
KEPT_BY_LOOKING: Final = {
    "django_session",
    "approvals_view",
    "interrupts_sweepround",
    "delegation_eventstream",
}
# The sweep has what people decided collected for learning, once that is due.
COLLECTED_WITHIN_SECONDS: Final = 15
PARAMETER: Final = re.compile(r"<(?:\w+:)?(\w+)>")
# What is behind a path's first parameter, by the word before it.
KINDS: Final = {
    "runs": "interrupts_run",
    "steps": "interrupts_step",
    "attempts": "interrupts_attempt",
    "checkpoints": "interrupts_checkpoint",
    "interrupts": "interrupts_interrupt",
    "freezes": "interrupts_freeze",
    "decisions": "approvals_gate",
    "gates": "approvals_gate",
    "substitutions": "approvals_substitution",
    "delegation": "delegation_delegation",
    "delegations": "delegation_delegation",
    "delegation-templates": "delegation_delegationtemplate",
    "templates": "delegation_delegationtemplate",
}
NOWHERE: Final = {"admin/(?P<url>.*)$", "api/v1/"}  # answer for every path that no other took


@pytest.fixture(scope="module")
def service() -> Service:
    """The demo after an answer was lost: rows of nearly every kind, and nothing under way."""
    found = live().demo
    with Abeyance(found.url, found.agent_key) as client:
        desk = Desk(found, client)
        call = desk.refund(answer_lost=True)
        found.person("bob").approve(call.gate)
        call.until("unknown")
        (interrupt,) = call.run.refresh()["open_interrupts"]
        found.person("ada").found_performed(interrupt, "It is in the ledger.", "shop-1")
        call.receipt()
        call.run.complete({})
        desk.refund()
    return found


@pytest.fixture
def ada(service: Service) -> Iterator[httpx.Client]:
    """The admin's browser, as far as it keeps cookies."""
    with httpx.Client(base_url=service.url, timeout=120) as client:
        page = client.get("/sign-in").text
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert found
        password = service.credentials["users"]["ada"]["password"]
        form = {"name": "ada", "password": password, "csrfmiddlewaretoken": found[1]}
        assert client.post("/sign-in", data=form).headers["Location"] == "/"
        yield client


def patterns(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Give every pattern with its whole path."""
    for one in resolver.url_patterns:
        path = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from patterns(one, path)
        else:
            yield path, one


@cache
def first_of(table: str) -> str:
    """Return the id of a row of the demo's; of one that is nowhere, where the table has none."""
    name = sql.Identifier(table)
    order = sql.SQL("ORDER BY id DESC LIMIT 1")
    found = asked(sql.SQL("SELECT id FROM {} {}").format(name, order))
    return str(found[0][0]) if found else str(uuid4())


def decided() -> tuple[str, str]:
    """Return a gate and a decision on it."""
    query = "SELECT gate_id, id FROM approvals_decision ORDER BY id DESC LIMIT 1"
    ((gate, decision),) = asked(sql.SQL(query))
    return str(gate), str(decision)


def path_of(shape: str, pattern: URLPattern) -> str:
    """Fill a pattern's parameters in with what is there."""
    shape = shape.replace("^(?P<app_label>tenants|interrupts|approvals|delegation)/$", "tenants/")
    admin = getattr(pattern.callback, "model_admin", None)
    gate, decision = decided()
    names = PARAMETER.findall(shape)
    filled: dict[str, str] = {"name": "mail.send", "answer": "approve", "decision": decision}
    filled["act"] = "accept"
    filled["question"] = decision  # nobody has asked one: what is below it is not there
    if admin is not None:
        filled["object_id"] = first_of(admin.model._meta.db_table)
    elif "pk" in names:
        word = re.split(r"/<", shape)[0].rsplit("/", 1)[-1]
        filled["pk"] = gate if KINDS[word] == "approvals_gate" else first_of(KINDS[word])
    return "/" + PARAMETER.sub(lambda found: filled[found[1]], shape)


def test_no_get_of_any_path_changes_a_row(service: Service, ada: httpx.Client) -> None:
    paths = [
        path_of(shape, pattern)
        for shape, pattern in patterns(get_resolver())
        if shape not in NOWHERE
    ]
    token = {"Authorization": f"Bearer {service.credentials['users']['ada']['token']}"}
    before = eventually(quiet, 120)
    answered: dict[str, int] = {}
    for path in paths:
        headers = token if path.startswith("/api/") else {}
        with ada.stream("GET", path, headers=headers) as answer:
            answered[path] = answer.status_code
    assert changed(before, rows()) == set()
    assert not {path: code for path, code in answered.items() if code >= 500}
    shown = {path for path, code in answered.items() if code == 200}
    assert {"/inbox", "/runs", "/profile", "/admin/", "/api/v1/gates"} <= shown
    lost = {path for path, code in answered.items() if code == 404}
    nowhere = ("/freezes/", "/questions/", "/substitutions/", "/delegation")  # none was made here
    lost = {one for one in lost if not one.startswith("/admin/")}
    assert not {one for one in lost if not any(part in one for part in nowhere)}


def test_a_row_that_changes_is_seen(service: Service) -> None:
    before = rows()
    with Abeyance(service.url, service.agent_key) as client:
        client.run("support", "Nothing to be done.").complete({})
    assert "interrupts_run" in changed(before, rows())


def quiet() -> Mapping[str, str] | None:
    """Return the rows once nothing changes them by itself, what is due a while after included."""
    asked(sql.SQL("UPDATE delegation_eventstream SET due_at = NULL RETURNING id"))
    before = rows()
    time.sleep(COLLECTED_WITHIN_SECONDS)
    return before if not changed(before, rows()) else None


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]} - KEPT_BY_LOOKING


def rows() -> dict[str, str]:
    """Return a digest of every table's rows."""
    tables = asked(sql.SQL("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
    digest = "SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {} t"
    return {name: asked(sql.SQL(digest).format(sql.Identifier(name)))[0][0] for (name,) in tables}


def asked(query: sql.Composable) -> list[tuple[Any, ...]]:
    """Ask the live service's database, as its owner, who sees every tenant's rows."""
    socket = DataFolder(live().data).postgres_socket
    with psycopg.connect(
        host=str(socket), port=PORT, user="abeyance_owner", dbname=NAME, autocommit=True
    ) as connection:
        return connection.execute(query).fetchall()
