"""`manage.py up`: start everything in order, keep it alive, stop it in order."""

import fcntl
import http.client
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

from config.database import make_database, make_roles
from config.supervisor.broker import broker_answers, broker_program
from config.supervisor.children import LONGEST_PAUSE_SECONDS, Child, stop_all
from config.supervisor.failures import CannotStart
from config.supervisor.keyfile import folder_mode
from config.supervisor.paths import DataFolder, make_private
from config.supervisor.postgres import embedded_cluster
from config.supervisor.processes import Program
from config.supervisor.service import beat_program, web_program, worker_program

START_LIMIT_SECONDS = 120
# The processes of a service that was just killed hold its port for a moment.
LET_GO_SECONDS = 10.0
WORK_STOP_SECONDS = 7.0
SERVER_STOP_SECONDS = 2.0
GLANCE_SECONDS = 0.1
TRIM_EVERY_SECONDS = 60


class Stopped(BaseException):
    """The supervisor was told to stop."""


@dataclass
class Supervisor:
    """Everything that one `up` runs, on one data folder and one port."""

    folder: DataFolder
    host: str
    port: int
    say: Callable[[str], None]
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    stop_seconds: float = WORK_STOP_SECONDS
    longest_pause: float = LONGEST_PAUSE_SECONDS
    servers: list[Child] = field(default_factory=list)
    workers: list[Child] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def run(self, prepare: Callable[[], Mapping[str, Program]]) -> None:
        """Start, say when it is ready, and keep it going until SIGTERM, SIGINT or SIGHUP.

        `prepare` is called once the database answers, and returns what runs beside the service.
        """
        make_private(self.folder.root, mode=folder_mode())
        with locked(self.folder) as after_a_kill:
            patience = LET_GO_SECONDS if after_a_kill else 0.0
            ensure_port_is_free(self.host, self.port, patience)
            make_private(self.folder.logs)
            self.say(f"data in {self.folder.root}, logs in {self.folder.logs}")
            if not self.environ.get("EMAIL_URL"):
                make_private(self.folder.mail)
                self.say(f"mails in {self.folder.mail}")
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, _stop)
            try:
                self._start(prepare)
                self._keep()
            except Stopped:
                self.say("stopping")
            finally:
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                stop_all(self.workers, self.stop_seconds)
                stop_all(self.servers, SERVER_STOP_SECONDS)

    def _start(self, prepare: Callable[[], Mapping[str, Program]]) -> None:
        began = time.monotonic()
        self._start_broker()
        self._start_database()
        self.say("migrating")
        beside = prepare()
        self.say("starting web, worker and beat")
        web = web_program(self.environ, host=self.host, port=self.port)
        self._launch(self.workers, "web", web)
        self._launch(self.workers, "worker", worker_program(self.environ))
        self._launch(self.workers, "beat", beat_program(self.environ, self.folder))
        for name, program in beside.items():
            self._launch(self.workers, name, program)
        self._wait_for("the service", lambda: is_ready(self.host, self.port))
        self.say(f"started in {time.monotonic() - began:.1f} s")
        self.say(f"ready: {self.url}")

    def _start_broker(self) -> None:
        if not self.environ.get("CELERY_BROKER_URL"):
            self._launch(self.servers, "broker", broker_program(self.folder))
            self._wait_for("the broker", lambda: broker_answers(self.folder))

    def _start_database(self) -> None:
        if url := self.environ.get("DATABASE_URL"):
            self.say("preparing the database of DATABASE_URL")
            make_roles(url, login=False)
            return
        cluster = embedded_cluster(self.folder, environ=self.environ)
        self.say("starting PostgreSQL")
        cluster.initialise()
        self._launch(self.servers, "postgres", cluster.program(), stop_signal=signal.SIGINT)
        self._wait_for("PostgreSQL", cluster.answers)
        make_roles(cluster.conninfo(), login=True)
        make_database(cluster.conninfo())

    def _launch(
        self, family: list[Child], name: str, program: Program, stop_signal: int = signal.SIGTERM
    ) -> None:
        log = self.folder.logs / f"{name}.log"
        child = Child(name, program, log, stop_signal, longest_pause=self.longest_pause)
        child.trim_log()
        family.append(child)
        child.start()

    def _wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise CannotStart(f"{what} did not start; the logs are in {self.folder.logs}")
            self._look_after_all()
            time.sleep(GLANCE_SECONDS / 2)

    def _keep(self) -> NoReturn:
        trim_at = time.monotonic() + TRIM_EVERY_SECONDS
        while True:
            time.sleep(GLANCE_SECONDS)
            self._look_after_all()
            if time.monotonic() > trim_at:
                trim_at = time.monotonic() + TRIM_EVERY_SECONDS
                for child in (*self.servers, *self.workers):
                    child.trim_log()

    def _look_after_all(self) -> None:
        for child in (*self.servers, *self.workers):
            if told := child.look_after():
                self.say(told)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Stopped


@contextmanager
def locked(folder: DataFolder) -> Iterator[bool]:
    """Hold the data folder; gives whether its last user was killed. CannotStart says who has it."""
    try:
        lock = folder.lock.open("a+")
    except PermissionError as fault:
        raise CannotStart(f"no right to write {folder.lock}: {fault.strerror}") from fault
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise CannotStart(
                f"the data folder {folder.root} is in use by process {lock.read().strip()};"
                " stop it, or set ABEYANCE_DATA_DIR to another folder"
            ) from None
        lock.seek(0)
        after_a_kill = lock.read() != ""
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            yield after_a_kill
        finally:
            lock.truncate(0)


def ensure_port_is_free(host: str, port: int, patience_seconds: float) -> None:
    """Raise CannotStart unless this host and port can be listened on within that time."""
    deadline = time.monotonic() + patience_seconds
    while fault := _listening_fault(host, port):
        if time.monotonic() >= deadline:
            raise CannotStart(
                f"can't listen on {host} port {port}: {fault.strerror or fault}; set ABEYANCE_PORT"
            )
        time.sleep(GLANCE_SECONDS)


def _listening_fault(host: str, port: int) -> OSError | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as fault:
        return fault
    return None


def is_ready(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(_dialled(host), port, timeout=5)
    try:
        connection.request("GET", "/healthz/ready")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _dialled(host: str) -> str:
    """The address to dial where the service listens on every address."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not a bind
