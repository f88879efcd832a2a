"""Django's handler, with a shorter way for those who give their secret with each request.

They have no session, no cookie to be protected and no page to be shown on, so what a page's request
goes through is nothing to them.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponseBase
from django.utils.module_loading import import_string

Chain = Callable[[HttpRequest], HttpResponseBase]
API: Final = "/api/"
# Those that set a header on every answer, or send away what came without TLS.
_FOR_ALL: Final = (
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
)


class Handler(WSGIHandler):
    """The WSGI application."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002 - Django's
        super().load_middleware(is_async)
        handler: Any = self  # its stubs leave these out
        whole: Chain = handler._middleware_chain  # noqa: SLF001 - Django's
        short = _wrapped(handler._get_response)  # noqa: SLF001 - Django's
        for name in reversed(settings.MIDDLEWARE):
            if name in _FOR_ALL:
                short = _wrapped(import_string(name)(short))

        def chain(request: HttpRequest) -> HttpResponseBase:
            return (short if _brings_a_secret(request) else whole)(request)

        handler._middleware_chain = chain  # noqa: SLF001 - Django's


def _brings_a_secret(request: HttpRequest) -> bool:
    return request.path_info.startswith(API) and bool(request.META.get("HTTP_AUTHORIZATION"))


def _wrapped(chain: Any) -> Chain:
    return cast("Chain", convert_exception_to_response(chain))
