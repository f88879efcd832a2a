"""The peers' own environment: made once from pinned versions, apart from the product's lock."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from benchmarks.processes import run

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / ".venv-peers"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
STAMP = FOLDER / "requirements.sha256"


class NoInstaller(Exception):
    """uv, which makes the peers' environment, was not found."""


def python() -> Path:
    """Return the peers' interpreter; the environment is made where it is missing or outdated."""
    interpreter = FOLDER / "bin" / "python"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not STAMP.exists() or STAMP.read_text() != wanted:
        uv, environment = _uv(), dict(os.environ)
        run(*uv, "venv", "--clear", "--python", sys.executable, FOLDER, environment=environment)
        install = ("pip", "install", "--python", interpreter, "-r", REQUIREMENTS)
        run(*uv, *install, environment=environment, seconds=600)
        STAMP.write_text(wanted)
    return interpreter


def _uv() -> list[str | Path]:
    """Return the command that is uv: the one the Makefile brought, else the machine's."""
    candidates = (PROJECT / ".uv" / "bin" / "uv", Path(sys.executable).with_name("uv"))
    for brought in candidates:
        if brought.exists():
            return [brought]
    if found := shutil.which("uv"):
        return [found]
    raise NoInstaller("uv was not found: `make setup` brings it")
