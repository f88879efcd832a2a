"""Cases of the kind checkpoint-versions: what a run was saved as, and who can read it."""

from __future__ import annotations

import pytest

from interrupts.models import Checkpoint
from interrupts.transitions import checkpoints, versions
from tenants.scope import tenant_scope
from tests.cases.world import World, auto
from tests.database import rewrite

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
RF = "rf-ckpt-01 (langchain-ai/langgraph#6938; tinyhumansai/tinyagents#129)"


def changed(world: World, checkpoint: str, **columns: object) -> None:
    """Change a checkpoint in the database."""
    with tenant_scope(world.tenant):
        rewrite(Checkpoint.objects.get(pk=checkpoint), **columns)


@pytest.mark.parametrize("version", [0, 99])
def test_a_run_does_not_go_on_from_a_checkpoint_of_another_version(
    world: World, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """rf-ckpt-01 (langchain-ai/langgraph#6938; tinyhumansai/tinyagents#129).

    The checkpoint was written by an older or a newer release, in good faith: it is whole.
    """
    world.given(world.tool("t"), rules=[auto("t")])
    run = world.run()
    monkeypatch.setattr(checkpoints, "SCHEMA_VERSION", version)
    stop = world.stop(run)
    monkeypatch.setattr(checkpoints, "SCHEMA_VERSION", versions.CURRENT)
    body = {"checkpoint": stop["checkpoint"], "resolution": "resume"}
    reply = world.refused("opr", "POST", f"/interrupts/{stop['id']}/response", body, status=409)
    assert reply.code == "checkpoint-version"
    assert str(version) in reply.body["detail"]
    run = world.fresh(run)
    assert (run["status"], run["open_interrupts"]) == ("suspended", [stop["id"]])


CHANGES: tuple[dict[str, object], ...] = (
    {"schema_version": 99},
    {"next_step": 7},
    {"pending_gates": "[1]"},
    {"status": "completed"},
)


def test_a_run_does_not_go_on_from_a_checkpoint_that_was_changed(world: World) -> None:
    """rf-ckpt-01: a value is gone, or another one stands in its place."""
    world.given(world.tool("t"), rules=[auto("t")])
    for columns in CHANGES:
        run = world.run()
        stop = world.stop(run)
        changed(world, stop["checkpoint"], **columns)
        body = {"checkpoint": stop["checkpoint"], "resolution": "resume"}
        path = f"/interrupts/{stop['id']}/response"
        reply = world.refused("opr", "POST", path, body, status=409)
        assert reply.code in ("damaged", "checkpoint-version")
        run = world.fresh(run)
        assert (run["status"], run["open_interrupts"]) == ("suspended", [stop["id"]])
    world.catch_up()
    assert world.outside.server.asked == []


@pytest.mark.parametrize(
    ("version", "columns"), [(99, {}), (0, {}), (versions.CURRENT, {"next_step": 7})]
)
def test_no_decision_has_a_run_go_on_from_such_a_checkpoint(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    columns: dict[str, object],
) -> None:
    """rf-ckpt-01, where a decision is what the run waits for."""
    world.given(world.tool("t"))
    monkeypatch.setattr(checkpoints, "SCHEMA_VERSION", version)
    run = world.run()
    step = world.propose(run, "t")
    monkeypatch.setattr(checkpoints, "SCHEMA_VERSION", versions.CURRENT)
    if columns:
        changed(world, world.fresh(run)["checkpoint"], **columns)
    gate = world.gate(step)
    path = f"/gates/{gate['id']}/decisions"
    plain = world.decision(gate)
    for body in (
        plain,
        world.decision(gate, "reject"),
        {**plain, "verdict": "respond", "value": 1},
    ):
        for key in (None, body["verdict"]):
            reply = world.refused("appr1", "POST", path, body, status=409, key=key)
            assert reply.code == ("damaged" if columns else "checkpoint-version")
    assert (world.fresh(run)["status"], world.inbox("appr1")) == ("suspended", [gate["id"]])
    world.catch_up()
    assert world.outside.server.asked == []


@pytest.mark.parametrize("version", [0, 99])
def test_no_run_is_forked_from_a_checkpoint_of_another_version(
    world: World, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """rf-ckpt-01, where an ended run goes on as a new one."""
    world.given(world.tool("t"))
    run = world.run()
    monkeypatch.setattr(checkpoints, "SCHEMA_VERSION", version)
    world.post("opr", f"/runs/{run['id']}/cancel", {})
    monkeypatch.setattr(checkpoints, "SCHEMA_VERSION", versions.CURRENT)
    body = {"checkpoint": world.fresh(run)["checkpoint"]}
    reply = world.refused("opr", "POST", f"/runs/{run['id']}/fork", body, status=409)
    assert reply.code == "checkpoint-version"
