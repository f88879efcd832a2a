"""The agent's own state: checked, kept whole or as what was appended, and put together again."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID

from django.db import connection

from config import jsontext
from config.errors import BodyTooLarge, InvalidBody, pointer
from interrupts import content
from interrupts.models import Checkpoint, Run
from interrupts.transitions.checkpoints import AgentState

LIMIT = 16 * 1024 * 1024  # bytes of the whole, canonical
MEMBERS = 100  # characters of format and version
INDEX = re.compile("0|[1-9][0-9]{0,9}")  # RFC 6901, 4


def read(document: dict[str, Any], run: Run | None, *, at: str = "/agent_state") -> AgentState:
    """Return the state that ``document`` gives; InvalidBody says where it is not one."""
    for name in ("format", "version"):
        value = document.get(name)
        if not isinstance(value, str) or not 1 <= len(value) <= MEMBERS:
            raise InvalidBody.at(f"{at}/{name}", f"a text of 1 to {MEMBERS} characters is needed")
    if "base" in document:
        return _grown(document, run, at)
    if "data" not in document:
        raise InvalidBody.at(f"{at}/data", "is missing")
    _only(document, {"format", "version", "data"}, at)
    body = jsontext.canonical(document["data"])
    return _state(document, body, body, None)


def _grown(document: dict[str, Any], run: Run | None, at: str) -> AgentState:
    _only(document, {"format", "version", "base", "append"}, at)
    base = _base(document["base"], run, at)
    if (base.agent_format, base.agent_version) != (document["format"], document["version"]):
        raise InvalidBody.at(f"{at}/base", "is of another format or version")
    append = document.get("append")
    if not isinstance(append, dict) or not all(isinstance(v, list) for v in append.values()):
        raise InvalidBody.at(f"{at}/append", "lists by JSON Pointer are needed")
    body = jsontext.canonical(append)  # as it is: what is added below may be added to
    whole = state_of(base)
    for place, items in append.items():
        _list_at(whole, place, f"{at}/append/{pointer(place)[1:]}").extend(items)
    return _state(document, jsontext.canonical(whole), body, base)


def _state(
    document: dict[str, Any], whole: bytes, body: bytes, base: Checkpoint | None
) -> AgentState:
    if len(whole) > LIMIT:
        raise BodyTooLarge(f"An agent's state may have {LIMIT} bytes.")
    return AgentState(
        format=document["format"],
        version=document["version"],
        size=len(whole),
        digest=jsontext.digest_bytes(whole),
        body=body,
        base=base,
    )


def _only(document: dict[str, Any], known: set[str], at: str) -> None:
    for name in sorted(document.keys() - known):
        raise InvalidBody.at(f"{at}{pointer(name)}", "is not a member of an agent state")


def _base(value: Any, run: Run | None, at: str) -> Checkpoint:
    """The base is a state of this run or of one that it was forked from."""
    try:
        base = Checkpoint.objects.select_related("run").get(pk=UUID(str(value)))
    except (ValueError, Checkpoint.DoesNotExist):
        raise InvalidBody.at(f"{at}/base", "is no checkpoint of this run") from None
    if run is None or base.run.key_scope != run.key_scope or base.agent_body is None:
        raise InvalidBody.at(f"{at}/base", "is no checkpoint of this run with a state")
    return base


def _list_at(value: Any, place: str, at: str) -> list[Any]:
    """Return the list that an RFC 6901 pointer names in ``value``."""
    if place and not place.startswith("/"):
        raise InvalidBody.at(at, "is not a JSON Pointer")
    for part in place.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise InvalidBody.at(at, "names nothing in the base's data")
    if not isinstance(value, list):
        raise InvalidBody.at(at, "names no list in the base's data")
    return value


CHAIN = """
WITH RECURSIVE chain AS (
    SELECT c.id, c.agent_base_id, c.agent_body, 0 AS depth
        FROM interrupts_checkpoint c WHERE c.id = %s
    UNION ALL
    SELECT b.id, b.agent_base_id, b.agent_body, chain.depth + 1
        FROM chain JOIN interrupts_checkpoint b ON b.id = chain.agent_base_id
) SELECT agent_body FROM chain ORDER BY depth DESC
"""


def state_of(checkpoint: Checkpoint) -> Any:
    """Return the whole state that a checkpoint holds: its base's, with each append in turn."""
    with connection.cursor() as cursor:
        cursor.execute(CHAIN, [checkpoint.pk])
        digests = [bytes(row[0]) for row in cursor.fetchall()]
    bodies = content.get_many(digests)
    first, *appends = (json.loads(bodies[digest]) for digest in digests)
    for append in appends:
        for place, items in append.items():
            _list_at(first, place, place).extend(items)
    return first
