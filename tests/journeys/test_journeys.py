"""Every scenario of this folder holds against the service as `manage.py up` runs it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any, TypeGuard

import httpx
import pytest

from config.supervisor.paths import data_folder
from tests.journeys.far_end import far_end
from tests.journeys.form import HERE, TENANT, scenarios
from tests.journeys.mails import in_folder
from tests.journeys.runner import SENT_SECONDS, Http, Journey, keys_of, tenant_of
from tests.live import live

pytestmark = pytest.mark.slow
SCENARIOS = scenarios()


@pytest.fixture(scope="module")
def journeys(request: pytest.FixtureRequest) -> Iterator[dict[str, Journey]]:
    """By scenario: a tenant and a far end of its own. The tenants are applied all at once."""
    default = json.loads((HERE / TENANT).read_text())
    chosen = {one.callspec.params["scenario"]["id"] for one in request.session.items if here(one)}
    wanted = [one for one in SCENARIOS if one["id"] in chosen]
    outsides = {one["id"]: far_end() for one in wanted}
    tenants = {
        one["id"]: tenant_of(one, default, slug(), outsides[one["id"]].server.authority)
        for one in wanted
    }
    elsewhere = tenant_of({}, default, slug(), "127.0.0.1:9")
    given = live().apply(*tenants.values(), elsewhere)
    strange = strangers(given, elsewhere)
    with httpx.Client(base_url=live().url, timeout=SENT_SECONDS) as client:
        folder = data_folder(live().environ).mail
        service = Http(client, live().apply, lambda: in_folder(folder))
        yield {
            name: Journey(service, tenant, keys(given, tenant) | strange, outsides[name])
            for name, tenant in tenants.items()
        }
    for outside in outsides.values():
        outside.close()


def here(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and item.module.__name__ == __name__


def slug() -> str:
    return f"t{secrets.token_hex(4)}"


def keys(given: dict[str, Any], tenant: dict[str, Any]) -> dict[str, str]:
    return keys_of(given[tenant["tenant"]], tenant["tenant"])


def strangers(given: dict[str, Any], tenant: dict[str, Any]) -> dict[str, str]:
    of_theirs = keys(given, tenant)
    return {"stranger": of_theirs["agent"], "stranger-ada": of_theirs["ada"]}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one["id"])
def test_it_holds(journeys: dict[str, Journey], scenario: dict[str, Any]) -> None:
    journeys[scenario["id"]].play(scenario["steps"])
