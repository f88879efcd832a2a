"""What `manage.py up` does for the demo: the tenant, and the far end as one more child."""

from __future__ import annotations

import io
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import yaml
from django.core.management import CommandError, call_command

from config.supervisor.paths import DataFolder, make_private
from config.supervisor.processes import Program
from demo.places import Places
from tenants.models import Tenant

TEMPLATE = Path(__file__).with_name("tenant.yaml")
PROJECT = TEMPLATE.parent.parent
# Beside the service's own port, so that the address stays what it was.
PORTS_APART = 1000
LAST_PORT = 65535


def install(
    data: DataFolder, url: str, port: int, say: Callable[[str], None]
) -> dict[str, Program]:
    """Make the demo's tenant where there is none, and return its far end, to be kept running.

    A repeat changes nothing, so what anybody changed in the tenant stays, unless the far end had to
    move. A tenant of this name that is not the demo's is left alone.
    """
    places = Places.of(data)
    make_private(places.folder)
    is_there = Tenant.objects.filter(slug=places.tenant).exists()
    if is_there and not places.credentials.exists():
        say(f"demo: a tenant {places.tenant} is there already; left alone")
        return {}
    far_end = _port(places, port + PORTS_APART)
    if fault := _make(places, f"127.0.0.1:{far_end}", is_there=is_there):
        say(f"demo: not set up: {fault}")
        return {}
    if not is_there:
        _tell_people(places, url, say)
    say(f"demo: what really happened is at http://127.0.0.1:{far_end}/")
    return {"demo": _program(places, far_end)}


def _make(places: Places, far_end: str, *, is_there: bool) -> str | None:
    """Apply the tenant's file where that was not done; returns why it could not be."""
    places.address.write_text(f"http://{far_end}\n")
    text = TEMPLATE.read_text().replace("${FAR_END}", far_end)
    if is_there and places.tenant_file.exists() and places.tenant_file.read_text() == text:
        return None
    wanted = places.tenant_file.with_suffix(".new.yaml")
    wanted.write_text(text)
    try:
        call_command("apply", str(wanted), credentials_out=places.credentials, stdout=io.StringIO())
    except CommandError as fault:
        return " ".join(str(fault).split())
    wanted.replace(places.tenant_file)
    return None


def _port(places: Places, wanted: int) -> int:
    """The far end's port: the one it had, else the wanted one, else any that is free."""
    known = places.address.read_text().strip() if places.address.exists() else ""
    for port in (int(known.rpartition(":")[2] or 0), wanted):
        if 0 < port <= LAST_PORT and _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _tell_people(places: Places, url: str, say: Callable[[str], None]) -> None:
    """Say who can sign in: once, since the passwords stay in a file that only its owner reads."""
    people = json.loads(places.credentials.read_text())[places.tenant]["users"]
    roles = {
        one["username"]: one["role"] for one in yaml.safe_load(TEMPLATE.read_text())["members"]
    }
    say(f"demo: sign in at {url}/ as one of these; they stay in {places.credentials}")
    for name, made in people.items():
        say(f"demo:   {name:<6} {made['password']}   {roles[name]}")


def _program(places: Places, port: int) -> Program:
    options = ["--port", str(port), "--folder", str(places.folder)]
    return Program([sys.executable, "-m", "demo.far_end", *options], cwd=PROJECT)
