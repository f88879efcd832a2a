"""Bodies: what their digests name, and each step the call that its digest names."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Final

from django.conf import settings

from config.keys import content_key
from interrupts import content
from interrupts.digests import step_digest
from interrupts.models import Checkpoint, Content, Receipt, Run, Step
from interrupts.verification.faults import Fault
from tenants.scope import current_tenant_id
from tenants.sealing import SealBroken

CHUNK: Final = 500


def faults(run: Run) -> Iterator[Fault]:
    """Yield each body of the run that is not what was put; one that was erased is no fault."""
    for step in Step.objects.filter(run=run).order_by("position").iterator(CHUNK):
        yield from _call(run, step)
    for model, noun, name in ((Step, "step", "result"), (Receipt, "receipt", "result"),
                              (Checkpoint, "checkpoint", "agent_body")):  # fmt: skip
        named = model.objects.filter(run=run).exclude(**{name: None})
        for pk, digest in named.values_list("pk", name).iterator(CHUNK):
            if isinstance(wrong := _body(digest), str):
                yield Fault(run.pk, f"{noun} {pk}", f"its {name} {wrong}")


def _call(run: Run, step: Step) -> Iterator[Fault]:
    arguments = _body(step.arguments)
    if isinstance(arguments, str):
        yield Fault(run.pk, f"step {step.pk}", f"its arguments {arguments}")
    elif arguments is not None and step.digest != step_digest(
        step.tool_name, step.tool_number, arguments
    ):
        yield Fault(run.pk, f"step {step.pk}", "its digest is not its call's")


def _body(digest: bytes | memoryview) -> bytes | str | None:
    """Return the body; None: it was erased; a text says what is wrong."""
    tenant, digest = current_tenant_id(), bytes(digest)
    row = Content.objects.filter(tenant_id=tenant, digest=digest).first()
    if row is None:
        return None  # a body may be erased: the journal keeps its keyed digest
    try:
        body = content.unseal(tenant, bytes(row.body), row.cipher)
    except SealBroken:
        return "can't be opened"
    return body if is_named(digest, body) else "is not the body that was stored"


def is_named(digest: bytes, body: bytes) -> bool:
    """Whether the digest is the body's, under a key that is or was current when it came."""
    tenant = current_tenant_id()
    return any(
        hmac.compare_digest(hmac.digest(content_key(tenant, key_id), body, "sha256"), digest)
        for key_id in settings.ABEYANCE_MASTER_KEYS
    )
