"""The published OpenAPI document and a page to browse it."""

from __future__ import annotations

import json
from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import View

from tenants.api import openapi

# The page's own files and nothing else; Swagger UI draws its icons from data URLs and sets styles
# on elements.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)


@lru_cache(maxsize=1)
def _document() -> bytes:
    return json.dumps(openapi.document(), ensure_ascii=False).encode()


class SchemaView(View):
    """GET the OpenAPI 3.1 document, as JSON."""

    def get(self, _request: HttpRequest) -> HttpResponse:
        return HttpResponse(_document(), content_type="application/json")


class DocsView(View):
    """GET the page that shows it."""

    def get(self, request: HttpRequest) -> HttpResponse:
        page = render(request, "api/docs.html")
        page.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return page
