"""Child processes that never outlive the process that started them."""

import ctypes
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int, death_signal: int = signal.SIGKILL) -> None:
    """Have the kernel send this process the signal once its parent is gone (Linux).

    `parent` is the process that started it. Where that is gone already the kernel would never say
    so, and this process ends here.
    """
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


@dataclass(frozen=True)
class Account:
    """The user that a child runs as; None leaves it as it is."""

    name: str | None = None

    @property
    def uid(self) -> int:
        return os.geteuid() if self.name is None else pwd.getpwnam(self.name).pw_uid

    @property
    def gid(self) -> int:
        return os.getegid() if self.name is None else pwd.getpwnam(self.name).pw_gid


@dataclass(frozen=True)
class Program:
    """What to run and how: everything a restart needs again."""

    command: Sequence[str | Path]
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    account: Account = Account()
    death_signal: int = signal.SIGKILL

    def start(self, output: IO[bytes] | int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start it as a direct child in a process group of its own.

        A terminal's Ctrl-C therefore reaches the parent alone, which stops its children in order.
        """
        account = self.account
        switch = account.name is not None
        return subprocess.Popen(
            self.command,
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output != subprocess.DEVNULL else subprocess.DEVNULL,
            process_group=0,
            user=account.uid if switch else None,
            group=account.gid if switch else None,
            extra_groups=[] if switch else None,
            # The caller has one thread, so nothing can hold a lock across the fork.
            preexec_fn=partial(die_with_parent, os.getpid(), self.death_signal),  # noqa: PLW1509
        )
