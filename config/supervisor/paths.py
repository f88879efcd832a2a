"""Where the data folder is and what lies in it.

Every process works the same answer out from the environment: `up` while it starts the embedded
servers, and any other command that talks to them.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.supervisor.failures import CannotStart

PROJECT = Path(__file__).resolve().parent.parent.parent
SYSTEM_FOLDER = Path("/var/lib/abeyance")
# A Unix socket's address holds 107 bytes; PostgreSQL adds `/.s.PGSQL.5432` to the folder.
LONGEST_SOCKET_FOLDER = 90


@dataclass(frozen=True)
class DataFolder:
    """The one folder that a service on this machine writes to."""

    root: Path

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def keys(self) -> Path:
        return self.root / "keys.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def mail(self) -> Path:
        """Where e-mails lie while no mail server is named."""
        return self.root / "mail"

    @property
    def beat(self) -> Path:
        return self.root / "beat"

    @property
    def cluster_elsewhere(self) -> Path:
        """Names the cluster's folder where PostgreSQL's user can't reach this one."""
        return self.root / "cluster-is-in"

    @property
    def cluster(self) -> Path:
        """The PostgreSQL cluster's folder."""
        try:
            return Path(self.cluster_elsewhere.read_text().strip())
        except (FileNotFoundError, NotADirectoryError):
            return self.root / "postgres"

    @property
    def postgres_socket(self) -> Path:
        return socket_folder(self.cluster / "socket")

    @property
    def broker_socket(self) -> Path:
        return socket_folder(self.root / "broker") / "valkey.sock"


def data_folder(environ: Mapping[str, str] = os.environ) -> DataFolder:
    """The data folder: ABEYANCE_DATA_DIR, else one of this checkout's own.

    Root's lies under /var/lib, since PostgreSQL refuses to run as root and the user it runs as
    can't look into root's private folders.
    """
    if given := environ.get("ABEYANCE_DATA_DIR"):
        return DataFolder(Path(given).expanduser().resolve())
    if os.geteuid() == 0:
        return DataFolder(SYSTEM_FOLDER / f"{PROJECT.name}-{short_hash(PROJECT)}")
    return DataFolder(PROJECT / ".abeyance")


def socket_folder(wanted: Path) -> Path:
    """The folder itself, or a short one in its place where a socket's address would not fit."""
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_FOLDER:
        return wanted
    return Path(tempfile.gettempdir()) / f"abeyance-{os.geteuid()}" / short_hash(wanted)


def short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def make_private(folder: Path, *, mode: int = 0o700, owner: int | None = None) -> None:
    """Make the folder with this mode, or take over one that is ours; repeats change nothing.

    Raises CannotStart where it belongs to somebody else, as one in a shared temporary folder may.
    """
    owner = os.geteuid() if owner is None else owner
    if folder.parent.name == f"abeyance-{os.geteuid()}":
        make_private(folder.parent, mode=0o711)
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(folder, owner, -1)
        if folder.is_symlink() or folder.lstat().st_uid != owner:
            raise CannotStart(f"{folder} belongs to somebody else")
        folder.chmod(mode)
    except (PermissionError, NotADirectoryError, FileExistsError) as fault:
        raise CannotStart(f"no right to use the folder {folder}: {fault.strerror}") from fault
