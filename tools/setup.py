"""Make .venv exactly as uv.lock says, with nothing but Python 3.11 or later to begin with.

uv does the work. Where it is not installed it is brought into .uv by pip, or by the venv module's
own pip; Debian keeps both in packages of their own, and where neither is there this says which one
to install.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
TOOLS = PROJECT / ".uv"
UV = "uv>=0.9,<1"
OLDEST = (3, 11)


def main() -> None:
    if sys.version_info < OLDEST:
        oldest, this = ".".join(map(str, OLDEST)), sys.version.split()[0]
        sys.exit(f"Python {oldest} or later is needed; this is {this}. Try `make PYTHON=...`.")
    uv = find_uv() or bring_uv()
    command = [*uv, "sync", "--frozen", "--extra", "embedded", "--python", sys.executable]
    done = subprocess.run(command, cwd=PROJECT, env=environment(), check=False)
    if done.returncode != 0:
        sys.exit("The locked dependencies could not be installed; see above.")


def find_uv() -> list[str] | None:
    path = os.pathsep.join([str(TOOLS / "bin"), os.environ.get("PATH", "")])
    known = shutil.which("uv", path=path)
    return [known] if known and works([known]) else None


def works(uv: list[str]) -> bool:
    done = subprocess.run([*uv, "--version"], capture_output=True, check=False)
    return done.returncode == 0


def bring_uv() -> list[str]:
    """Install uv for this project alone."""
    print("installing uv into .uv", flush=True)
    partial = Path(tempfile.mkdtemp(prefix=".uv-", dir=PROJECT))
    quiet = ["install", "--quiet", "--disable-pip-version-check"]
    try:
        if works([sys.executable, "-m", "pip"]):
            run([sys.executable, "-m", "pip", *quiet, "--target", str(partial), UV])
        elif importlib.util.find_spec("ensurepip"):
            run([sys.executable, "-m", "venv", str(partial)])
            run([str(partial / "bin" / "pip"), *quiet, UV])
        else:
            sys.exit("There is no uv, pip or venv: install the package python3-venv, or uv.")
        shutil.rmtree(TOOLS, ignore_errors=True)
        partial.rename(TOOLS)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return [str(TOOLS / "bin" / "uv")]


def run(command: list[str]) -> None:
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        sys.exit("uv could not be installed; see above.")


def environment() -> dict[str, str]:
    """Ours, without a virtual environment that another project may have active."""
    return {name: text for name, text in os.environ.items() if name != "VIRTUAL_ENV"}


if __name__ == "__main__":
    main()
