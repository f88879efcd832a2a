"""The agent's own state: checked, kept whole or as what was appended, and put together again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from config import jsontext
from config.errors import BodyTooLarge, InvalidBody, pointer
from interrupts import content
from interrupts.errors import CheckpointVersion, Damaged
from interrupts.models import Checkpoint, Content, Run
from interrupts.transitions import versions
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
    return _state(document, len(body), jsontext.digest_bytes(body), body, None)


def _grown(document: dict[str, Any], run: Run | None, at: str) -> AgentState:
    """Read what a base grew by. Costs what was added, where its lists have grown before."""
    _only(document, {"format", "version", "base", "append"}, at)
    base = _base(document["base"], run, at)
    if (base.agent_format, base.agent_version) != (document["format"], document["version"]):
        raise InvalidBody.at(f"{at}/base", "is of another format or version")
    append = document.get("append")
    if not isinstance(append, dict) or not all(isinstance(v, list) for v in append.values()):
        raise InvalidBody.at(f"{at}/append", "lists by JSON Pointer are needed")
    body = jsontext.canonical(append)
    try:
        size = _size_grown(base, append, body, at)
    except (Content.DoesNotExist, Damaged):
        raise InvalidBody.at(f"{at}/base", "has no state any more that is what was put") from None
    digest = versions.grown_digest(str(base.agent_digest), body)
    return _state(document, size, digest, body, base)


def _size_grown(base: Checkpoint, append: dict[str, list[Any]], body: bytes, at: str) -> int:
    """Return the size of the whole, canonical; InvalidBody where a place is no list of the base."""
    if append.keys() <= _lists_grown_by(base):
        return int(base.agent_size or 0) + sum(map(_more, append.values()))
    whole = state_of(base)
    _add(whole, json.loads(body), f"{at}/append")
    return len(jsontext.canonical(whole))


def _lists_grown_by(base: Checkpoint) -> set[str]:
    """The places of lists, not empty ones, that the base itself added to: lists they stay."""
    if base.agent_base_id is None or base.agent_body is None:
        return set()
    appended = json.loads(content.get(base.agent_body))
    return {place for place, items in appended.items() if items}


def _more(items: list[Any]) -> int:
    """How much longer a list that is not empty is with these items, canonical: a comma for each."""
    return len(jsontext.canonical(items)) - 1 if items else 0


def _add(whole: Any, append: dict[str, list[Any]], at: str) -> None:
    """Add to the lists of ``whole``. What is added may be added to: its list comes before it."""
    for place, items in append.items():
        _list_at(whole, place, f"{at}/{pointer(place)[1:]}").extend(items)


def _state(
    document: dict[str, Any], size: int, digest: str, body: bytes, base: Checkpoint | None
) -> AgentState:
    if size > LIMIT:
        raise BodyTooLarge(f"An agent's state may have {LIMIT} bytes.")
    return AgentState(
        format=document["format"],
        version=document["version"],
        size=size,
        digest=digest,
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
    try:
        versions.check_known(base)
    except CheckpointVersion:
        raise InvalidBody.at(f"{at}/base", "is of a version that is not known here") from None
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


# One statement, however long the chain is, and each link is found by its key.
CHAIN = """
WITH RECURSIVE chain AS (
    SELECT c.id, 0 AS depth, c.agent_base_id, c.agent_body, c.agent_digest, c.schema_version
        FROM interrupts_checkpoint c WHERE c.id = %s
    UNION ALL
    SELECT b.id, chain.depth + 1, b.agent_base_id, b.agent_body, b.agent_digest, b.schema_version
        FROM chain JOIN interrupts_checkpoint b ON b.id = chain.agent_base_id
) SELECT agent_base_id IS NOT NULL, agent_body, agent_digest, schema_version
    FROM chain ORDER BY depth DESC
"""


@dataclass(frozen=True, slots=True)
class _Link:
    """One checkpoint of a chain: what it keeps, and the digest that this gives."""

    grew: bool
    body: bytes
    digest: str
    schema_version: int


def state_of(checkpoint: Checkpoint) -> Any:
    """Return the whole state that a checkpoint holds: its base's, with each append in turn.

    Raises Damaged where a body is not the one that was put, CheckpointVersion.
    """
    versions.check_known(checkpoint)
    links = _chain(checkpoint)
    bodies = content.get_many(link.body for link in links)
    first, *appends = links
    whole = json.loads(bodies[first.body])
    _check(first, jsontext.digest_bytes(bodies[first.body]))
    before = first
    for link in appends:
        body = bodies[link.body]
        if link.schema_version > 1:
            _check_whole(before, whole)
            _check(link, versions.grown_digest(before.digest, body))
        _add(whole, json.loads(body), "")
        before = link
    _check_whole(before, whole)
    return whole


def _chain(checkpoint: Checkpoint) -> list[_Link]:
    with connection.cursor() as cursor:
        cursor.execute(CHAIN, [checkpoint.pk])
        return [_Link(row[0], bytes(row[1]), row[2], row[3]) for row in cursor.fetchall()]


def _check_whole(link: _Link, whole: Any) -> None:
    """Check a link of version 1, whose digest is of the whole; the ones before it are in that."""
    if link.grew and link.schema_version == 1:
        _check(link, jsontext.digest(whole))


def _check(link: _Link, digest: str) -> None:
    if link.digest != digest:
        raise Damaged("The agent's state is not what was put.")
