"""The shorter way is for those who bring a secret to the API; its answers are those of the whole."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler

from config.handler import Handler
from tests.tenants.conftest import World

RUNS = "/api/v1/runs"
FOR_PEOPLE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
)


def ask(handler: WSGIHandler, path: str, method: str = "GET", **more: str) -> Any:
    """Return status, headers and body of the answer."""
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.input": io.BytesIO(b""),
        "wsgi.url_scheme": "http",
        **more,
    }
    head: list[Any] = []
    answer: Any = handler(environ, lambda status, headers: head.extend((status, dict(headers))))
    try:
        return (*head, b"".join(answer))
    finally:
        answer.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which of the middleware of people's pages a request goes through."""
    found: list[str] = []
    for name in FOR_PEOPLE:
        module, _, kind = name.rpartition(".")
        process = getattr(__import__(module, fromlist=[kind]), kind).process_request

        def noted(self: Any, request: Any, name: str = name, process: Any = process) -> Any:
            found.append(name)
            return process(self, request)

        monkeypatch.setattr(f"{name}.process_request", noted)
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("path", "status"), [(RUNS, "200"), ("/api/v1/nothing", "404")])
def test_a_secret_is_answered_alike_and_goes_the_shorter_way(
    acme: World, asked: list[str], path: str, status: str
) -> None:
    secret = acme.bearer("alice")["Authorization"]
    whole = ask(WSGIHandler(), path, HTTP_AUTHORIZATION=secret)
    assert tuple(asked) == FOR_PEOPLE
    asked.clear()
    short = ask(Handler(), path, HTTP_AUTHORIZATION=secret)
    assert not asked
    assert short[0].startswith(status)
    assert short[0] == whole[0]
    assert short[1].keys() == whole[1].keys()
    assert short[1]["X-Content-Type-Options"] == "nosniff"
    assert short[1]["X-Frame-Options"] == "DENY"


@pytest.mark.django_db(transaction=True)
def test_a_wrong_secret_is_refused_on_the_shorter_way(acme: World) -> None:
    status, _, body = ask(Handler(), RUNS, HTTP_AUTHORIZATION="Bearer abu_nobody")
    assert status.startswith("401")
    assert b"unauthenticated" in body


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "header"),
    [("/sign-in", "Bearer abu_nobody"), (RUNS, "")],
)
def test_everybody_else_goes_the_whole_way(asked: list[str], path: str, header: str) -> None:
    ask(Handler(), path, HTTP_AUTHORIZATION=header)
    assert tuple(asked) == FOR_PEOPLE


@pytest.mark.django_db(transaction=True)
def test_a_secret_opens_no_form_of_a_page() -> None:
    status, *_ = ask(Handler(), "/sign-in", "POST", HTTP_AUTHORIZATION="Bearer abu_nobody")
    assert status.startswith("403")
