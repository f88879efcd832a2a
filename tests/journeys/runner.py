"""Plays a scenario: each step is a thing done or looked at from outside, in order."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import httpx

from tests.cases.far_end import Outside
from tests.journeys.far_end import ledger, order
from tests.journeys.form import Malformed, Step, verb_of
from tests.journeys.mails import Mail, Mails, of_people
from tests.journeys.matching import Failed, dig, expect, holds

PATIENCE_SECONDS: Final = 30
BETWEEN_LOOKS_SECONDS: Final = 0.1
SENT_SECONDS: Final = 75  # a wait of the API is up to 60
TAKEN: Final = (200, 201, 202)
NAMED: Final = re.compile(r"\$\{([^}]+)\}")

Body = dict[str, Any]


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]


class Service(Protocol):
    """What a scenario is played against."""

    def send(self, request: Step, key: str | None) -> Answer: ...
    def apply(self, *tenants: Body) -> Body: ...
    def mails(self) -> list[Mail]: ...


@dataclass
class Http:
    """The service at its address, by a client that is kept open."""

    client: httpx.Client
    apply: Callable[..., Body]
    mails: Mails

    def send(self, request: Step, key: str | None) -> Answer:
        path = request["path"]
        content = _content(request)
        headers = {"Accept": "application/json"}
        headers |= {"Content-Type": "application/json"} if content is not None else {}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        came = self.client.request(
            request.get("method", "GET" if content is None else "POST"),
            path[1:] if path.startswith("@") else f"/api/v1{path}",
            content=content,
            headers=headers | request.get("headers", {}),
        )
        return Answer(
            came.status_code, _read(came), {k.lower(): v for k, v in came.headers.items()}
        )


def _content(request: Step) -> bytes | None:
    if "raw" in request:
        raw: str = request["raw"]
        return raw.encode("utf-8", "surrogatepass")
    return json.dumps(request["body"]).encode() if "body" in request else None


def _read(came: httpx.Response) -> Any:
    try:
        return came.json() if came.content else None
    except ValueError:
        return {"text": came.text[:2000]}


def tenant_of(scenario: Mapping[str, Any], default: Body, slug: str, host: str) -> Body:
    """Return the scenario's tenant: the default with its policy and tools laid over it."""
    made = json.loads(json.dumps(scenario.get("tenant", default)))
    made["policy"] = made.get("policy", {}) | scenario.get("policy", {})
    tools = {tool["name"]: tool for tool in made["tools"]}
    for one in scenario.get("tools", []):
        tools[one["name"]] = tools.get(one["name"], {}) | one
    made["tools"] = list(tools.values())
    text = json.dumps(made).replace("${T}", slug).replace("${W}", host)
    filled: Body = json.loads(text)
    return filled


def keys_of(credentials: Mapping[str, Any], slug: str) -> dict[str, str]:
    """Return the keys of a tenant's agents and people, by the names that scenarios use."""
    people = credentials.get("users", {})
    return dict(credentials.get("agents", {})) | {
        name.removesuffix(f"-{slug}"): person["token"] for name, person in people.items()
    }


@dataclass
class Journey:
    """One scenario, with its tenant and its far end. `play` raises Failed, or Malformed."""

    service: Service
    tenant: Body
    keys: Mapping[str, str]
    outside: Outside
    saved: Body = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.saved |= {"T": self.tenant["tenant"], "W": self.outside.server.authority}

    def play(self, steps: list[Step]) -> None:
        for number, step in enumerate(steps, 1):
            try:
                self._step(step)
            except (Failed, Malformed) as fault:
                raise type(fault)(f"step {number}: {fault}") from None

    def _step(self, step: Step) -> None:
        """Do what the step's verb says; each has a method of its name."""
        verb = verb_of(step)
        getattr(self, f"_{verb}")(step)

    # Requests

    def _send(self, request: Step) -> Answer:
        filled = self._fill(request)
        who = filled.get("as", "agent")
        if who != "nobody" and who not in self.keys:
            raise Malformed(f"there is no {who}")
        return self.service.send(filled, self.keys.get(who))

    def _path(self, request: Step) -> None:
        answer = self._send(request)
        method = request.get("method", "POST" if "body" in request else "GET")
        what = f"{request.get('as', 'agent')} {method} {self._fill(request['path'])}"
        wanted = request.get("status", TAKEN)
        if answer.status not in (wanted if isinstance(wanted, list | tuple) else [wanted]):
            told = json.dumps(answer.body)[:400]
            raise Failed(f"{what}: status: wanted {wanted}, got {answer.status} {told}")
        expect(answer.body, self._fill(request.get("expect", {})), what)
        expect(answer.headers, self._fill(request.get("expect_headers", {})), f"{what}: headers")
        self._save(answer.body, request.get("save", {}), what)

    def _parallel(self, step: Step) -> None:
        many = step["parallel"]
        requests = many if isinstance(many, list) else [many] * step["count"]
        with ThreadPoolExecutor(len(requests)) as pool:
            got = Counter(str(answer.status) for answer in pool.map(self._send, requests))
        wanted = step["statuses"]
        if not got.keys() <= wanted.keys() or not all(
            holds(got[status], count) for status, count in wanted.items()
        ):
            raise Failed(f"parallel: statuses: wanted {json.dumps(wanted)}, got {dict(got)}")

    # What is beside them

    def _ledger(self, step: Step) -> None:
        self._look_at_ledger(step["ledger"], step.get("save", {}))

    def _until_ledger(self, step: Step) -> None:
        self._wait(lambda: self._look_at_ledger(step["until_ledger"], {}), step)

    def _look_at_ledger(self, wanted: Mapping[str, Any], save: Mapping[str, str]) -> None:
        found = ledger(self.outside)
        expect(found, self._fill(wanted), "ledger")
        self._save(found, save, "ledger")

    def _mails(self, step: Step) -> None:
        self._look_at_mails(step["mails"])

    def _until_mails(self, step: Step) -> None:
        self._wait(lambda: self._look_at_mails(step["until_mails"]), step)

    def _look_at_mails(self, wanted: Mapping[str, Any]) -> None:
        ending = f"-{self.tenant['tenant']}"
        names = {one["email"]: one["username"] for one in self.tenant["members"]}
        people = {address: name.removesuffix(ending) for address, name in names.items()}
        expect(of_people(self.service.mails(), people), self._fill(wanted), "mails")

    def _control(self, step: Step) -> None:
        order(self.outside, self._fill(step["control"]))

    def _apply(self, step: Step) -> None:
        """Replace the policy, where one is given; change the members and groups that are named."""
        change = self._fill(step["apply"])
        self.tenant["policy"] = change.get("policy", self.tenant["policy"])
        members = {one["username"]: one for one in self.tenant["members"]}
        for name, changed in change.get("members", {}).items():
            members[f"{name}-{self.tenant['tenant']}"].update(changed)
        self.tenant["groups"] = self.tenant.get("groups", {}) | change.get("groups", {})
        self.service.apply(self.tenant)

    def _sleep(self, step: Step) -> None:
        time.sleep(step["sleep"])

    def _until(self, step: Step) -> None:
        self._wait(lambda: self._path(step["until"]), step)

    def _wait(self, look: Callable[[], None], step: Step) -> None:
        seconds = step.get("timeout", PATIENCE_SECONDS)
        deadline = time.monotonic() + seconds
        while True:
            try:
                return look()
            except Failed as fault:
                if time.monotonic() > deadline:
                    raise Failed(f"after {seconds} s still: {fault}") from None
            time.sleep(BETWEEN_LOOKS_SECONDS)

    def _either(self, step: Step) -> None:
        faults = []
        for steps in step["either"]:
            try:
                return self.play(steps)
            except Failed as fault:
                faults.append(str(fault))
        raise Failed("neither: " + " | ".join(faults))

    # Names

    def _save(self, body: Any, names: Mapping[str, str], what: str) -> None:
        for name, path in names.items():
            found = dig(body, path)
            if not found:
                raise Failed(f"{what}: {path}: nothing is there to save as {name}")
            self.saved[name] = found[0]

    def _fill(self, value: Any) -> Any:
        """Put what was saved in the place of its name, anywhere in a value."""
        match value:
            case {"$repeat": [text, times]}:
                return self._fill(text) * times
            case dict():
                return {self._fill(name): self._fill(inner) for name, inner in value.items()}
            case list():
                return [self._fill(inner) for inner in value]
            case str():
                whole = NAMED.fullmatch(value)
                return self._named(whole) if whole else self._filled(value)
        return value

    def _filled(self, text: str) -> str:
        return NAMED.sub(lambda name: str(self._named(name)), text)

    def _named(self, name: re.Match[str]) -> Any:
        key, _, path = name[1].partition(".")
        found = dig(self.saved[key], path) if key in self.saved else []
        if not found:
            raise Malformed(f"nothing was saved as {name[1]}")
        return found[0]
