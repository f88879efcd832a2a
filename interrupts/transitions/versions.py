"""Versions of what a run is resumed from: known ones are brought up to date, all others refused.

A checkpoint is read as a document. One of an older schema version is brought to the current one by
the functions registered for the versions between; the stored row stays what it was. Nothing that a
document does not say is made up for it: what is missing or is no such thing is `Damaged`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from config import jsontext
from interrupts.errors import CheckpointVersion, Damaged
from interrupts.models import Checkpoint, Run, RunStatus

Document = dict[str, Any]
Migration = Callable[[Document], Document]

CURRENT: Final = 2
WHOLE: Final = "whole"  # the digest of an agent's state is that of the whole, canonical
GROWN: Final = "grown"  # it is that of its base's digest and of what was added (`grown_digest`)

_MIGRATIONS: dict[int, Migration] = {}


def migrates(version: int) -> Callable[[Migration], Migration]:
    """Register the function that brings a document of ``version`` to the next one.

    It returns a new document and asks nobody: the same one always becomes the same.
    """

    def register(migration: Migration) -> Migration:
        if version in _MIGRATIONS:
            raise ValueError(f"schema version {version} has its migration already")
        _MIGRATIONS[version] = migration
        return migration

    return register


@migrates(1)
def _say_of_what_the_digest_is(document: Document) -> Document:
    """Version 1 digested an agent's state whole, also where it is kept as what was added."""
    return {**document, "agent_digest_of": WHOLE}


def grown_digest(base: str, append: bytes) -> str:
    """Return the digest of a state that grew: of its base's digest and of the canonical append."""
    return jsontext.digest_bytes(b'{"append":' + append + b',"base":"' + base.encode() + b'"}')


def document_of(checkpoint: Checkpoint) -> Document:
    """Return everything that a run is resumed from, as the checkpoint's own version says it."""
    document: Document = {
        "run": str(checkpoint.run_id),
        "sequence": checkpoint.sequence,
        "state_version": checkpoint.state_version,
        "schema_version": checkpoint.schema_version,
        "status": str(checkpoint.status),
        "next_step": checkpoint.next_step,
        "pending_gates": checkpoint.pending_gates,
        "receipts_through": checkpoint.receipts_through,
        "permissions": checkpoint.permissions,
        "inputs": checkpoint.inputs,
        "agent_format": checkpoint.agent_format,
        "agent_version": checkpoint.agent_version,
        "agent_digest": checkpoint.agent_digest,
        "agent_base": str(checkpoint.agent_base_id) if checkpoint.agent_base_id else None,
    }
    if checkpoint.schema_version >= 2:
        document["agent_digest_of"] = GROWN if checkpoint.agent_base_id else WHOLE
    return document


def digest_of(checkpoint: Checkpoint) -> str:
    """Return the digest of everything a run is resumed from."""
    return jsontext.digest(document_of(checkpoint))


def current(checkpoint: Checkpoint, taken: Document | None = None) -> Document:
    """Return the checkpoint's document (``taken``, where that is known), in the current version.

    Raises CheckpointVersion, and Damaged where it does not say what it must.
    """
    check_known(checkpoint)
    document = document_of(checkpoint) if taken is None else taken
    for version in range(checkpoint.schema_version, CURRENT):
        document = {**_MIGRATIONS[version](document), "schema_version": version + 1}
    _check_shape(document)
    return document


def check_known(checkpoint: Checkpoint) -> None:
    """Raise CheckpointVersion where no function of this release reads the checkpoint."""
    version = checkpoint.schema_version
    missing = [older for older in range(version, CURRENT) if older not in _MIGRATIONS]
    if version > CURRENT:
        raise CheckpointVersion(
            f"It was taken by a newer release, under schema version {version}; this one knows up"
            f" to {CURRENT}. Go on with that release, or cancel the run."
        )
    if version < 1 or missing:
        raise CheckpointVersion(
            f"Its schema version is {version}, and nothing here brings that to {CURRENT}."
        )


def check_run(document: Document, run: Run) -> None:
    """Raise Damaged where the document says what its run can't have come to."""
    at_most = {
        "state_version": run.state_version,
        "next_step": run.last_position + 1,
        "receipts_through": run.journal_seq,
    }
    for name, limit in at_most.items():
        if document[name] > limit:
            raise Damaged(f"The checkpoint's {name} is beyond what its run has come to.")
    if document["permissions"]["epoch"] > run.epoch:
        raise Damaged("The checkpoint's epoch is beyond what its run has come to.")


def _check_shape(document: Document) -> None:
    """Raise Damaged where the document is not what the current version says."""
    for name, holds in _SHAPE.items():
        if name not in document or not holds(document[name]):
            raise Damaged(f"The checkpoint does not say its {name}.")
    for name in ("authority_version", "epoch", "session"):
        if not _counts(document["permissions"].get(name)):
            raise Damaged(f"The checkpoint does not say the {name} of its permissions.")


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_SHAPE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "sequence": lambda value: _counts(value) and value > 0,
    "state_version": _counts,
    "status": lambda value: value in RunStatus.values,
    "next_step": lambda value: _counts(value) and value > 0,
    "pending_gates": lambda value: (
        isinstance(value, list) and all(isinstance(gate, str) for gate in value)
    ),
    "receipts_through": _counts,
    "permissions": lambda value: isinstance(value, dict),
    "agent_digest_of": lambda value: value in {WHOLE, GROWN},
}
