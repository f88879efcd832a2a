"""Requests per second over HTTP: proposals and decisions, beside a bare insert.

No worker runs meanwhile: what a request leaves to be done is done elsewhere, as it is in
production; here it would share two processors with the requests that are measured.
"""

from benchmarks.bare import server as bare
from benchmarks.client import Client, request_bytes
from benchmarks.figures import milliseconds
from benchmarks.load import CONNECTIONS, drive
from benchmarks.ours.api import Credentials, ask, new_run, proposal_bytes, step_body
from benchmarks.processor import spent

WARMING = 50
# Enough runs that the requests on their way at one time are of different ones.
RUNS = 8 * CONNECTIONS


def bare_insert(port: int, requests: int) -> dict[str, float]:
    """Insert one row a request."""
    made = [
        request_bytes(
            "POST", "/notes", {"run": number % bare.RUNS + 1, "body": step_body("bench.read")}
        )
        for number in range(WARMING + requests)
    ]
    return _measured(port, made)


def propose(port: int, credentials: Credentials, requests: int) -> dict[str, float]:
    """Propose one pure step a request."""
    with Client(port, credentials.agent) as agent:
        runs = [new_run(agent) for _ in range(RUNS)]
    made = [
        proposal_bytes(credentials.agent, runs[number % RUNS], "bench.read")
        for number in range(WARMING + requests)
    ]
    return _measured(port, made)


def decide(port: int, credentials: Credentials, requests: int) -> dict[str, float]:
    """Approve one step a request, each of a run of its own."""
    asked = ask(port, credentials, "bench.hold", WARMING + requests)
    return _measured(port, [each.approval_bytes(credentials.approver) for each in asked])


def _measured(port: int, requests: list[bytes]) -> dict[str, float]:
    drive(port, requests[:WARMING]).expect(201)
    before = spent()
    load = drive(port, requests[WARMING:])
    used = spent() - before
    load.expect(201)
    return {
        "requests_per_s": load.per_second,
        "cpu_ms": used * 1e3 / len(load.latencies),
        "load_share_of_a_core": load.own_share,
        **milliseconds(load.latencies),
    }
