"""The whole API over two applied tenants: one with a run in which everything there can be is."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from pytest_django import DjangoDbBlocker

from delegation.models import Delegation, DelegationTemplate
from interrupts.models import Tool
from tenants.api import openapi
from tenants.models import Tenant, User
from tenants.scope import tenant_scope
from tests.conftest import flush
from tests.tenantfile.conftest import acme, other

Answer = tuple[int, Any, Mapping[str, str]]
NO_SUCH = "00000000-0000-7000-8000-000000000000"
# Showing a gate records that it was shown (docs/guarantees.md, the ninth); nothing else may differ.
LOOKING = {"approvals_view"}


@dataclass
class Api:
    """The service as its callers see it, and the rows behind it."""

    tenant: UUID
    secrets: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    def send(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        raw: bytes | None = None,
        **more: str,
    ) -> Answer:
        data = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if who != "nobody":
            headers["Authorization"] = f"Bearer {self.secrets[who]}"
        made = Client().generic(
            method, f"/api/v1{path}", data, content_type="application/json", headers=headers
        )
        is_json = made.headers.get("Content-Type", "").endswith("json") and made.content
        return made.status_code, json.loads(made.content) if is_json else None, made.headers

    def made(self, who: str, method: str, path: str, body: Any = None) -> Any:
        status, answer, _ = self.send(who, method, path, body)
        assert status in (200, 201, 202), answer
        return answer

    def fill(self, path: str, ids: Mapping[str, str] | None = None) -> str:
        """Put real ids (or other ones) into a published path."""
        known = self.ids if ids is None else ids
        noun = path.removeprefix("/api/v1/").partition("/")[0]
        if "{decision}" in path:
            noun = "decided"
        path = path.removeprefix("/api/v1").replace("{id}", known.get(noun, ""))
        return re.sub(r"\{(\w+)\}", lambda found: known[found[1]], path)

    def rows(self) -> dict[str, Any]:
        """A digest of every row of the tenant, by table: what a refusal must leave as it was."""
        with tenant_scope(self.tenant), connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant_id'"
                " AND table_schema = 'public'"
            )
            tables = sorted(name for (name,) in cursor.fetchall() if name not in LOOKING)
            cursor.execute(
                " UNION ALL ".join(
                    f"SELECT '{one}', count(*), coalesce(sum(hashtext(t::text)), 0) FROM {one} t"
                    for one in [*tables, "tenants_tenant"]
                )
            )
            return {name: (count, digest) for name, count, digest in cursor.fetchall()}


def published() -> list[tuple[str, str]]:
    """Every (method, path) that the OpenAPI document names."""
    return [
        (method.upper(), path)
        for path, operations in openapi.document()["paths"].items()
        for method in operations
    ]


@pytest.fixture(scope="module")
def api(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    """One world for a module whose every test shows that it changed nothing."""
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        for module in ("interrupts.queue.send", "approvals.queue.send"):
            patch.setattr(module, lambda *_: None)
        yield make_api(tmp_path_factory.mktemp("api"))
        flush()


def make_api(folder: Path) -> Api:
    here = acme(agents=[{"name": "bot"}, {"name": "other"}])
    here["members"].append({"username": "olga", "email": "olga@acme.test", "role": "operator"})
    here["policy"]["rules"].append(
        {"name": "mails", "trigger": "action", "tools": ["mail.*"], "then": "allow"}
    )
    file, out = folder / "file.yaml", folder / "out.json"
    file.write_text("\n---\n".join(map(json.dumps, [here, other("umbrella")])))
    call_command("apply", file, credentials_out=out, stdout=io.StringIO())
    given = json.loads(out.read_text())
    secrets = {
        **given["acme"]["agents"],
        **{name: one["token"] for name, one in given["acme"]["users"].items()},
        "stranger": given["umbrella"]["agents"]["bot"],
        "stranger-ada": given["umbrella"]["users"]["ada-umbrella"]["token"],
    }
    made = Api(Tenant.objects.get(slug="acme").pk, secrets)
    fill_with_everything(made)
    return made


def fill_with_everything(api: Api) -> None:
    """Start a run with a step that is asked about, one in flight, a checkpoint and a freeze."""
    run = api.made("bot", "POST", "/runs", {"workflow": "w", "goal": "g"})
    shell = {"tool": "local.shell", "arguments": {}}
    claimed = api.made("bot", "POST", f"/runs/{run['id']}/steps", shell)
    gate = api.made("alice", "GET", f"/gates/{claimed['gate']}")
    digest = {"digest": gate["what"]["digest"], "confirmation": gate["required_confirmation"]}
    decided = api.made(
        "alice", "POST", f"/gates/{gate['id']}/decisions", {"verdict": "approve", **digest}
    )
    attempt = api.made("bot", "POST", f"/steps/{claimed['id']}/claim", {})
    step = api.made("bot", "POST", f"/runs/{run['id']}/steps", shell)
    run = api.made("bot", "GET", f"/runs/{run['id']}")
    asked = {"text": "Which host?"}
    question = api.made("alice", "POST", f"/gates/{step['gate']}/questions", asked)
    freeze = api.made("olga", "POST", "/freezes", {"scope": "agent", "name": "other", "note": "x"})
    stands_in = {"substitute": "bob", "ends_at": "2999-12-31T00:00:00Z"}
    substitution = api.made("alice", "POST", "/substitutions", stands_in)
    api.ids = {
        "runs": run["id"],
        "steps": step["id"],
        "attempts": attempt["attempt"],
        "gates": step["gate"],
        "interrupts": step["interrupt"],
        "checkpoints": run["checkpoint"],
        "freezes": freeze["id"],
        "substitutions": substitution["id"],
        "delegations": str(rule_of_ada(api)),
        "delegation-templates": str(template_of_ada(api)),
        "decided": decided["id"],
        "decision": decided["decisions"][0]["id"],
        "question": question["id"],
        "name": "local.shell",
    }


def rule_of_ada(api: Api) -> UUID:
    """Return a rule that is suggested to the admin."""
    with tenant_scope(api.tenant):
        tool = Tool.objects.select_related("current").get(name="local.shell")
        made = Delegation.objects.create(
            user=User.objects.get(username="ada"),
            tool=tool.pk,
            status="suggested",
            origin="person",
            risk="low",
            predicate={"all": [{"f": "@agent", "in": ["bot"]}], "per_day": {"calls": 1}},
            sha256=f"sha256:{'0' * 64}",
        )
        return made.pk


def template_of_ada(api: Api) -> UUID:
    """Return a rule that the admin offers to everybody."""
    with tenant_scope(api.tenant):
        made = DelegationTemplate.objects.create(
            tool=Tool.objects.get(name="local.shell").pk,
            tool_number=1,
            risk="low",
            predicate={"all": [{"f": "@agent", "in": ["bot"]}]},
            sha256=f"sha256:{'0' * 64}",
            published_by=User.objects.get(username="ada"),
        )
        return made.pk
