"""What one proposing and one deciding request cost the server, sign-in included.

Prints ``{"propose": {"counters"}, "decide": {"counters"}}``. The requests go through the WSGI
application in this process, with no worker running, so that nothing else is counted.
"""

import io
import json
from typing import Any, cast

from benchmarks.figures import report
from benchmarks.ours.api import BASE, step_body
from benchmarks.ours.inprocess import AGENT, APPROVER, counting
from config.wsgi import application

REQUESTS = 50


class Refused(Exception):
    """A request that is measured was refused."""


def call(method: str, path: str, token: str, body: object = None, **headers: str) -> Any:
    """Answer one request and return what it holds; Refused unless it succeeded."""
    content = b"" if body is None else json.dumps(body).encode()
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(content)),
        "HTTP_AUTHORIZATION": f"Bearer {token}",
        "wsgi.input": io.BytesIO(content),
        "wsgi.url_scheme": "http",
        **headers,
    }
    answer = application(environ, cast("Any", _note_nothing))
    try:
        text = b"".join(answer)
        if answer.status_code >= 300:
            raise Refused(f"{path}: {answer.status_code} {text[:500]!r}")
        return json.loads(text)
    finally:
        answer.close()


def _note_nothing(*_: object) -> None:
    """Stand for the server, which sends the head of an answer."""


def new_run() -> str:
    """Start a run and return its id."""
    body = {"workflow": "bench", "goal": "be measured"}
    run: str = call("POST", f"{BASE}/runs", AGENT, body)["id"]
    return run


def propose(run: str, tool: str) -> dict[str, Any]:
    """Propose a step and return it."""
    step: dict[str, Any] = call("POST", f"{BASE}/runs/{run}/steps", AGENT, step_body(tool))
    return step


def cost_of_proposing() -> dict[str, float]:
    """Return what one proposal of a pure step costs."""
    runs = [new_run() for _ in range(REQUESTS)]
    with counting() as count:
        for run in runs:
            propose(run, "bench.read")
    return count.each(REQUESTS)


def cost_of_deciding() -> dict[str, float]:
    """Return what one approval costs."""
    gates = []
    for _ in range(REQUESTS):
        step = propose(new_run(), "bench.hold")
        gates.append(call("GET", f"{BASE}/gates/{step['gate']}", APPROVER))
    with counting() as count:
        for gate in gates:
            body = {"verdict": "approve", "digest": gate["what"]["digest"]}
            key = f"counted-{gate['id']}"
            path = f"{BASE}/gates/{gate['id']}/decisions"
            call("POST", path, APPROVER, body, HTTP_IDEMPOTENCY_KEY=key)
    return count.each(REQUESTS)


def main() -> None:
    """Count and print."""
    propose(new_run(), "bench.read")
    report(
        {
            "propose": {"counters": cost_of_proposing()},
            "decide": {"counters": cost_of_deciding()},
        }
    )


if __name__ == "__main__":
    main()
