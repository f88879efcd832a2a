"""The peers' own environment: made once from pinned versions, apart from the product's lock."""

import hashlib
import os
import sys
from pathlib import Path

from benchmarks.processes import run
from tools.setup import bring_uv, find_uv

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / ".venv-peers"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
STAMP = FOLDER / "requirements.sha256"


def python() -> Path:
    """Return the peers' interpreter; the environment is made where it is missing or outdated."""
    interpreter = FOLDER / "bin" / "python"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not STAMP.exists() or STAMP.read_text() != wanted:
        uv, environment = find_uv() or bring_uv(), dict(os.environ)
        run(*uv, "venv", "--clear", "--python", sys.executable, FOLDER, environment=environment)
        install = ("pip", "install", "--python", interpreter, "-r", REQUIREMENTS)
        run(*uv, *install, environment=environment, seconds=600)
        STAMP.write_text(wanted)
    return interpreter
