"""Django's WSGI application, called on a few threads."""

import asyncio
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from io import BytesIO
from types import TracebackType
from typing import Any, Protocol

from config.front.http import Headers, Request, Response

ExcInfo = tuple[type[BaseException], BaseException, TracebackType]


class WsgiApplication(Protocol):
    def __call__(self, environ: dict[str, Any], start_response: Any, /) -> Iterable[bytes]: ...


class Bridge:
    """Passes a whole request to a WSGI application and returns its whole response.

    One hand-over to a thread and one back: every response of this service is a bounded document
    (what has no end is streamed by the front, a document at a time).
    """

    def __init__(self, application: WsgiApplication, threads: int) -> None:
        self.application = application
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="django")

    async def __call__(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        # A context of its own, so that nothing a request sets is seen by the thread's next one.
        return await loop.run_in_executor(self.executor, Context().run, self.call, request)

    def call(self, request: Request) -> Response:
        started: list[tuple[int, Headers]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], _exc_info: ExcInfo | None = None
        ) -> None:
            raw = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in headers]
            started.append((int(status[:3]), raw))

        chunks = self.application(environ_of(request), start_response)
        try:
            body = b"".join(chunks)
        finally:
            if close := getattr(chunks, "close", None):
                close()
        status, headers = started[-1]
        return Response.of(status, headers, body)


def environ_of(request: Request) -> dict[str, Any]:
    """Return the WSGI environment (PEP 3333) of an ASGI HTTP scope."""
    scope = request.scope
    server = scope.get("server") or ("localhost", 80)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    if client := scope.get("client"):
        environ["REMOTE_ADDR"], environ["REMOTE_PORT"] = client[0], str(client[1])
    for name, value in request.headers:
        _add_header(environ, name.decode("latin-1"), value.decode("latin-1"))
    return environ


def _add_header(environ: dict[str, Any], name: str, value: str) -> None:
    if name == "content-type":
        environ["CONTENT_TYPE"] = value
        return
    # An underscore would pass for a hyphen; the body has been read, so its framing is ours to say.
    if "_" in name or name in {"content-length", "transfer-encoding"}:
        return
    key = f"HTTP_{name.upper().replace('-', '_')}"
    if key in environ:
        environ[key] += f"{'; ' if name == 'cookie' else ','}{value}"
    else:
        environ[key] = value
