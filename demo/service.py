"""The running service and the demo in it, as the demo's programs find them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from config.supervisor.paths import data_folder
from demo.places import Places

DEFAULT_PORT = "8765"


class NotThere(Exception):
    """What the demo needs is not there; the text says what to do."""


@dataclass(frozen=True, slots=True)
class FarEnd:
    """The shop, called by somebody who holds its own key."""

    url: str
    key: str

    def order(self, fault: Mapping[str, Any]) -> None:
        """Order a fault."""
        self._post("/faults", dict(fault)).raise_for_status()

    def make(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Make a call as programs do that know nothing of keys: once more is once more."""
        answer = self._post(f"/tools/{tool}", {"arguments": dict(arguments)})
        return answer.raise_for_status().json()["result"]

    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx.get(f"{self.url}/ledger").json()["entries"]
        return found

    def _post(self, path: str, body: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.post(f"{self.url}{path}", json=body, headers=headers, timeout=5)


@dataclass(frozen=True, slots=True)
class Service:
    """The service that `manage.py up` runs in the same environment."""

    url: str
    places: Places
    credentials: Mapping[str, Any]
    far_end: FarEnd
    mail: Path

    @classmethod
    def here(cls, environ: Mapping[str, str]) -> Service:
        """Find the service. Raises NotThere."""
        url = f"http://127.0.0.1:{environ.get('ABEYANCE_PORT') or DEFAULT_PORT}"
        _ensure_it_answers(url)
        places = Places.here(environ)
        try:
            credentials = json.loads(places.credentials.read_text())[places.tenant]
            far_end = FarEnd(
                places.address.read_text().strip(), places.merchant_key.read_text().strip()
            )
        except FileNotFoundError as fault:
            raise NotThere(
                f"the service has no demo tenant ({fault.filename} is missing): was it started"
                " with ABEYANCE_DEMO=0, or with another data folder?"
            ) from fault
        return cls(url, places, credentials, far_end, data_folder(environ).mail)

    @property
    def agent_key(self) -> str:
        key: str = self.credentials["agents"]["support-bot"]
        return key

    def person(self, username: str) -> Person:
        return Person(self.url, self.credentials["users"][username]["token"])


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody of the tenant, acting over the API in place of clicking."""

    url: str
    token: str

    def get(self, path: str, **query: str | int) -> Any:
        return self._answer(httpx.get(f"{self.url}/api/v1/{path}", params=query, **self._how))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._answer(httpx.post(f"{self.url}/api/v1/{path}", json=dict(body), **self._how))

    def approve(self, gate_id: str) -> None:
        """Look at what would run, and approve exactly that."""
        gate = self.get(f"gates/{gate_id}")
        while gate["state"] == "preparing":  # its preview is being taken
            gate = self.get(f"gates/{gate_id}", wait="5", after_version=gate["state_version"])
        asked = {"typed": gate["required_confirmation"], "explicit": True}.get(gate["ceremony"])
        confirmation = {} if asked is None else {"confirmation": asked}
        shown = {"verdict": "approve", "digest": gate["what"]["digest"]}
        self.post(f"gates/{gate_id}/decisions", shown | confirmation)

    def found_performed(self, interrupt_id: str, evidence: str, external_id: str) -> None:
        """Settle an outcome that nobody knew: it was performed, and this shows it."""
        checkpoint = self.get(f"interrupts/{interrupt_id}")["checkpoint"]
        value = {"outcome": "performed", "evidence": evidence, "external_id": external_id}
        answer = {"checkpoint": checkpoint, "resolution": "resume", "value": value}
        self.post(f"interrupts/{interrupt_id}/response", answer)

    @property
    def _how(self) -> dict[str, Any]:
        return {"headers": {"Authorization": f"Bearer {self.token}"}, "timeout": 70}

    def _answer(self, answer: httpx.Response) -> Any:
        if answer.is_error:
            answer.read()
            raise RuntimeError(f"{answer.status_code}: {answer.text}")
        return answer.json()


def _ensure_it_answers(url: str) -> None:
    try:
        is_ready = httpx.get(f"{url}/healthz/ready", timeout=10).is_success
    except httpx.TransportError:
        is_ready = False
    if not is_ready:
        raise NotThere(f"nothing is ready at {url}; start it with `make up` in another terminal")
