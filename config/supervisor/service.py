"""The service's own processes: web, worker and beat."""

import os
import sys
from collections.abc import Mapping

from config.supervisor.paths import PROJECT, DataFolder, make_private
from config.supervisor.processes import Program

WEB_PROCESSES = 2
# What waits costs no thread, so a process may hold many more requests than it works on.
REQUESTS_HELD_PER_PROCESS = 16384
BACKLOG = 2048


def web_program(environ: Mapping[str, str], *, host: str, port: int) -> Program:
    options = {
        "--interface": "asgi",
        "--host": host,
        "--port": str(port),
        "--workers": environ.get("ABEYANCE_WEB_PROCESSES", str(WEB_PROCESSES)),
        "--http": "1",
        "--backlog": str(BACKLOG),
        "--backpressure": str(REQUESTS_HELD_PER_PROCESS),
        "--workers-kill-timeout": "3",
        "--log-level": "warning",
    }
    flags = ["--no-ws", "--respawn-failed-workers", "--respawn-interval", "0.2"]
    arguments = [part for pair in options.items() for part in pair]
    return _python("granian", *arguments, *flags, "config.asgi:application", environ=environ)


def worker_program(environ: Mapping[str, str]) -> Program:
    options = ["--pool", "prefork", "--loglevel", "WARNING"]
    lean = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return _python("celery", "-q", "-A", "config", "worker", *options, *lean, environ=environ)


def beat_program(environ: Mapping[str, str], folder: DataFolder) -> Program:
    make_private(folder.beat)
    options = ["--loglevel", "WARNING", "--pidfile", ""]
    return _python("celery", "-q", "-A", "config", "beat", *options, environ=environ)


def _python(module: str, *arguments: str, environ: Mapping[str, str]) -> Program:
    env = {**os.environ, **environ, "ABEYANCE_SUPERVISED": "1", "PYTHONUNBUFFERED": "1"}
    return Program([sys.executable, "-m", module, *arguments], env=env, cwd=PROJECT)
