import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from interrupts.effects import Call, Effect, effect_for
from tests.interrupts.effects.far_end import FarEnd

SECRET = "whsec_" + base64.b64encode(b"a secret of twenty-four!").decode()

CALL = Call(
    tool="payments.refund",
    tool_version=3,
    arguments='{"amount":"20.00","payment":"p-€-1"}'.encode(),
    run="run-1",
    step="step-1",
    attempt="attempt-1",
    idempotency_key="key-1",
    timeout=2.0,
)


@pytest.fixture
def call() -> Call:
    return CALL


@pytest.fixture
def brief() -> Call:
    """A call that has little time."""
    return replace(CALL, timeout=0.3)


@pytest.fixture
def far_end() -> Iterator[FarEnd]:
    far_end = FarEnd()
    yield far_end
    far_end.close()


@pytest.fixture
def effect_at(far_end: FarEnd) -> Callable[..., Effect]:
    """Make an http effect at the far end, which stands among the allowed hosts unless told."""

    def make(url: str | None = None, allowed: list[str] | None = None, **more: Any) -> Effect:
        base = f"http://{far_end.authority}"
        parts = {
            "preview": {"url": f"{base}/preview/refund"},
            "reconcile": {"url": f"{base}/effects/refund/{{key}}"},
            "compensate": {"url": f"{base}/effects/refund/{{key}}/compensate"},
            "secret": SECRET,
            "allowed_hosts": [far_end.authority] if allowed is None else allowed,
        }
        return effect_for({"kind": "http", "url": url or far_end.url}, **{**parts, **more})

    return make


@pytest.fixture
def effect(effect_at: Callable[..., Effect]) -> Effect:
    return effect_at()
