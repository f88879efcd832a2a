"""`make chaos`: runs under kill -9 of everything, against a far end that breaks in every way.

Ends with one JSON line; duplicates and losses are counted from the far end's ledger. The exit code
is 0 where none of the four faults was seen and nothing was left running.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.chaos import agents, people
from tests.chaos.counting import count
from tests.chaos.farend import Ledger, serve
from tests.chaos.killing import Watch, deck, destroy
from tests.chaos.service import KINDS, NoAnswer, Service
from tests.chaos.state import Chaos
from tests.chaos.tenant import SLUG, document

RUNS, EFFECTS, KILLS, KILLS_A_KIND = 200, 400, 200, 20
AGENTS = 14
# Once nothing is killed any more the runs end: so long may nothing move before they are stuck.
GRACE_SECONDS = 120.0
LONGEST_SECONDS = 3600.0  # of killing, and then of ending, where a slow machine takes for ever
TELL_SECONDS = 10.0
FAULTS = ("duplicates", "lost", "stuck", "unverified")


class Numbers:
    """The numbers of the runs, each given to one agent."""

    def __init__(self) -> None:
        self.lock, self.next = threading.Lock(), 0

    def take(self) -> int:
        with self.lock:
            self.next += 1
            return self.next - 1


def main() -> None:
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and clean up
    _say(f"seed {given.seed}")
    base = Path("/var/lib/abeyance-chaos" if os.geteuid() == 0 else tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base) as root:
        Path(root).chmod(0o755)
        figures = _in_folder(Path(root), given)
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.exit(1 if any(figures[name] for name in FAULTS) or figures["problems"] else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--minutes", type=float, default=0, help="go on for at least so long")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--keep-logs", type=Path, help="copy the service's logs into this folder")
    return parser.parse_args()


def _in_folder(root: Path, given: argparse.Namespace) -> dict[str, Any]:
    ledger = Ledger(given.seed)
    server = serve(ledger)
    service = Service.start(root)
    try:
        host = f"127.0.0.1:{server.server_address[1]}"
        chaos = Chaos(service, ledger, _credentials(service, root, host), given.seed)
        figures = play(chaos, given)
    finally:
        orphans = service.stop()
        server.shutdown()
        if given.keep_logs:
            _keep(service.folder.logs, root, given.keep_logs)
    problems = [*chaos.problems, *(f"left running: {line}" for line in orphans)]
    for problem in problems[:60]:
        _say(problem)
    return {**figures, "problems": len(problems)}


def _credentials(service: Service, root: Path, host: str) -> dict[str, Any]:
    file, out = root / "tenant.json", root / "credentials.json"
    file.write_text(json.dumps(document(host)))
    applied = service.manage("apply", str(file), "--credentials-out", str(out))
    if applied.returncode:
        raise RuntimeError(applied.stderr)
    credentials: dict[str, Any] = json.loads(out.read_text())[SLUG]
    return credentials


def play(chaos: Chaos, given: argparse.Namespace) -> dict[str, Any]:
    a_kind = min(KILLS_A_KIND, given.kills // len(KINDS))
    kinds = deck(given.kills, a_kind, chaos.dice("deck"))
    ends = chaos.began + max(LONGEST_SECONDS, given.minutes * 60)
    watch = Watch(chaos)
    killer = threading.Thread(target=_kill, args=(chaos, kinds, given, ends), daemon=True)
    helpers = [
        threading.Thread(target=_kept_at, args=(chaos, act, name), daemon=True)
        for name, act in (
            ("decide", people.decide), ("decide too", people.decide), ("meddle", people.meddle),
            ("recover", people.recover),
        )
    ]  # fmt: skip
    numbers = Numbers()
    drivers = [
        threading.Thread(target=_drive, args=(chaos, given, killer, numbers), daemon=True)
        for _ in range(given.agents)
    ]
    for thread in (watch, killer, *helpers, *drivers):
        thread.start()
    _wait(chaos, killer, drivers, given)
    figures = count(chaos, watch)
    chaos.over.set()
    chaos.problems += _short_of(figures, given, kinds)
    return {**figures, "seconds": round(chaos.seconds)}


def _short_of(
    figures: dict[str, Any], given: argparse.Namespace, kinds: list[str]
) -> Iterator[str]:
    """What the numbers asked for were not reached: then nothing was shown."""
    if kinds:
        yield f"the time was up with {len(kinds)} kills left"
    if figures["runs"] < given.runs:
        yield f"{figures['runs']} runs are fewer than {given.runs}"
    if given.runs >= RUNS and figures["effects"] < EFFECTS:
        yield f"{figures['effects']} effects are fewer than {EFFECTS}"
    if given.runs >= RUNS and figures["ways_unused"]:
        yield f"the far end did not break in every way: {figures['ways_unused']}"


def _kill(chaos: Chaos, kinds: list[str], given: argparse.Namespace, until: float) -> None:
    destroy(chaos, kinds, until)
    again = 0
    while chaos.seconds < given.minutes * 60:
        more = deck(100, 10, chaos.dice(f"deck {again}"))
        destroy(chaos, more, chaos.began + given.minutes * 60)
        again += 1


def _drive(
    chaos: Chaos, given: argparse.Namespace, killer: threading.Thread, numbers: Numbers
) -> None:
    """Drive one run after the other: those asked for, and on while there is killing to do."""
    while killer.is_alive() or numbers.next < given.runs:
        try:
            agents.work(chaos, numbers.take())
        except (RuntimeError, NoAnswer, agents.Ended) as fault:
            chaos.problem(f"an agent gave up: {fault!r}")


def _kept_at(chaos: Chaos, act: Callable[..., None], name: str) -> None:
    while not chaos.over.is_set():
        try:
            people.keep_at(chaos, act, name)
        except NoAnswer as fault:
            chaos.problem(f"{name} got no answer: {fault}")


def _wait(
    chaos: Chaos,
    killer: threading.Thread,
    drivers: list[threading.Thread],
    given: argparse.Namespace,
) -> None:
    told, calm_at, moved_at, seen = 0.0, 0.0, 0.0, (0, 0)
    while any(thread.is_alive() for thread in drivers):
        time.sleep(0.2)
        if chaos.seconds - told > TELL_SECONDS:
            told = chaos.seconds
            _tell(chaos)
        if not killer.is_alive() and not calm_at:
            calm_at = chaos.seconds
            _say(f"nothing is killed any more after {calm_at:.0f} s")
        # Runs that were asked for and not begun yet are driven first.
        chaos.ledger.calm = bool(calm_at) and len(chaos.taken.runs) >= given.runs
        now = (len(chaos.ended), chaos.ledger.ways.total())
        if now != seen:
            seen, moved_at = now, chaos.seconds
        grace = max(GRACE_SECONDS, 2 * chaos.service.started_in)
        still = chaos.seconds - max(calm_at, moved_at) > grace
        if calm_at and (still or chaos.seconds - calm_at > LONGEST_SECONDS):
            chaos.problem("agents were still at work when the time was up")
            return


def _tell(chaos: Chaos) -> None:
    load = os.getloadavg()[0]
    _say(
        f"{chaos.seconds:5.0f} s  runs {len(chaos.ended)}/{len(chaos.taken.runs)}"
        f"  effects {chaos.ledger.effects}  kills {chaos.kills.total()}"
        f"+{chaos.ledger.kills}  load {load:.1f}"
    )


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _keep(logs: Path, root: Path, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for log in (*logs.glob("*.log*"), *root.glob("*.log")):
        (to / log.name).write_bytes(log.read_bytes())


if __name__ == "__main__":
    main()
