"""What `manage.py up` makes for the demo, when, and what it leaves alone."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import transaction

from config.supervisor.paths import PROJECT, DataFolder
from demo.install import PORTS_APART, install
from demo.places import Places
from tenants.journal import SYSTEM
from tenants.models import Membership, Tenant, User
from tenants.scope import tenant_scope
from tenants.services.organisations import make_tenant
from tests.live import live

URL = "http://127.0.0.1:8765"


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path)


class Heard(list[str]):
    """What was said."""

    def __str__(self) -> str:
        return "\n".join(self)


def set_up(data: DataFolder, port: int) -> tuple[dict[str, Any], Heard]:
    heard = Heard()
    programs = install(data, URL, port, heard.append)
    return programs, heard


@pytest.fixture
def port() -> int:
    """A port of a service beside which the far end's is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = int(probe.getsockname()[1])
    return free - PORTS_APART


@pytest.mark.django_db(transaction=True)
class TestInstalling:
    def test_it_is_made_once_and_its_people_are_told_once(
        self, data: DataFolder, port: int
    ) -> None:
        programs, heard = set_up(data, port)
        assert list(programs) == ["demo"]
        given = json.loads(Places.of(data).credentials.read_text())["acme"]
        assert {"ada", "bob", "carol"} == given["users"].keys()
        assert all(one["password"] in str(heard) for one in given["users"].values())
        assert given["agents"]["support-bot"] not in str(heard)

        again, heard = set_up(data, port)
        assert list(again) == ["demo"]
        assert not any(one["password"] in str(heard) for one in given["users"].values())
        assert f"http://127.0.0.1:{port + PORTS_APART}/" in str(heard)

    def test_what_it_writes_is_its_owners_alone(self, data: DataFolder, port: int) -> None:
        set_up(data, port)
        places = Places.of(data)
        assert stat.S_IMODE(places.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(places.credentials.stat().st_mode) == 0o600

    def test_what_was_changed_in_it_stays(self, data: DataFolder, port: int) -> None:
        set_up(data, port)
        tenant = Tenant.objects.get(slug="acme")
        with tenant_scope(tenant.pk):
            Membership.objects.filter(user__username="carol").update(role="operator")
        set_up(data, port)
        with tenant_scope(tenant.pk):
            assert Membership.objects.get(user__username="carol").role == "operator"

    def test_where_its_port_is_taken_the_far_end_moves_and_the_tools_with_it(
        self, data: DataFolder, port: int
    ) -> None:
        set_up(data, port)
        with socket.create_server(("127.0.0.1", port + PORTS_APART)):
            _, heard = set_up(data, port)
        applied = Places.of(data).tenant_file.read_text()
        address = Places.of(data).address.read_text().strip().removeprefix("http://")
        assert address != f"127.0.0.1:{port + PORTS_APART}"
        assert yaml.safe_load(applied)["policy"]["allowed_hosts"] == [address]
        assert "not set up" not in str(heard)

    def test_a_tenant_of_that_name_that_is_not_the_demos_is_left_alone(
        self, data: DataFolder, port: int
    ) -> None:
        with transaction.atomic():
            make_tenant(SYSTEM, slug="acme", name="The real Acme")
        programs, heard = set_up(data, port)
        assert programs == {}
        assert "left alone" in str(heard)
        assert Tenant.objects.get(slug="acme").name == "The real Acme"
        assert not Places.of(data).credentials.exists()

    def test_somebody_elses_name_keeps_it_from_being_made_and_the_service_starts(
        self, data: DataFolder, port: int
    ) -> None:
        User.objects.create(username="bob", email="bob@elsewhere.test")
        programs, heard = set_up(data, port)
        assert programs == {}
        assert heard[0].startswith("demo: not set up: ")
        assert not Tenant.objects.filter(slug="acme").exists()


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, True),
        ({"ABEYANCE_DEMO": "0"}, False),
        ({"DATABASE_URL": "postgresql://u@db.example/abeyance"}, False),
        ({"DATABASE_URL": "postgresql://u@db.example/abeyance", "ABEYANCE_DEMO": "1"}, True),
    ],
)
def test_in_a_database_that_was_given_it_is_made_only_where_it_is_asked_for(
    environ: dict[str, str], wanted: bool, tmp_path: Path
) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "ABEYANCE_DEMO"}}
    done = subprocess.run(
        [sys.executable, "-c", "from config import settings; print(settings.ABEYANCE_DEMO)"],
        cwd=PROJECT,
        env=clean | {"ABEYANCE_DATA_DIR": str(tmp_path)} | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(wanted)


@pytest.mark.slow
def test_up_says_who_can_sign_in_before_it_is_ready() -> None:
    said = live().said
    given = json.loads(Places.here(live().environ).credentials.read_text())["acme"]["users"]
    for name, made in given.items():
        assert any(name in line and made["password"] in line for line in said[:-1])
    assert said[-1].startswith("ready: ")


def test_every_file_that_makes_the_demo_is_there() -> None:
    for name in ("requests.csv", "orders.csv", "tenant.yaml"):
        assert (PROJECT / "demo" / name).is_file()
