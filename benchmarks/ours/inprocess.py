"""The service's code in this process, and its connections through the counting door.

Importing it sets Django up, so it is imported before anything of the service that needs that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django
from django.db import connections, transaction
from django.http import HttpRequest

from benchmarks.counters import NAME, Count, counted, server_folder
from benchmarks.wire import Wire
from config.celery import app  # noqa: F401 - wakes are sent by the application that is current

django.setup()

from approvals.tenantfile.applying import apply_documents  # noqa: E402 - Django must be set up first
from approvals.tenantfile.checking import check_documents  # noqa: E402
from tenants.api.auth import signed_in  # noqa: E402
from tenants.changes import Issued  # noqa: E402
from tenants.principal import Principal  # noqa: E402

DATABASE = os.environ["BENCH_DATABASE"]
AGENT, APPROVER = os.environ["BENCH_AGENT"], os.environ["BENCH_APPROVER"]


class NotApplied(Exception):
    """A tenant that is to be measured was refused."""


@contextmanager
def counting() -> Iterator[Count]:
    """Count the block: every connection of this process is made in it and ended with it."""
    with Wire(server_folder()) as wire:
        _connect_to(str(wire.folder))
        with counted(DATABASE, wire) as count:
            yield count
            connections.close_all()
    _connect_to(str(server_folder()))


def _connect_to(host: str) -> None:
    connections.close_all()
    for alias in connections:
        settings = connections[alias].settings_dict
        settings["HOST"] = host
        settings["OPTIONS"]["application_name"] = NAME


_connect_to(str(server_folder()))


@contextmanager
def as_agent(key: str = AGENT) -> Iterator[Principal]:
    """Work as the agent who holds the key, the benchmark's own by default, as a request does."""
    request = HttpRequest()
    request.META["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    with signed_in(request) as signed:
        yield signed.principal


def new_tenant(document: dict[str, Any]) -> Issued:
    """Make a tenant as its file would, and return the credentials; NotApplied if it is refused."""
    if faults := check_documents([document]):
        raise NotApplied(faults)
    with transaction.atomic(durable=True):
        (applied,) = apply_documents([document], issue=True)
    return applied.issued
