"""Every path of the service: its API under /api/v1, its health, and each app's own."""

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerView

from config.health import urlpatterns as health

APIS = ("tenants.api.urls", "interrupts.api.urls", "approvals.api.urls")


def exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


urlpatterns: list[URLPattern | URLResolver] = [
    *health,
    *(path("api/v1/", include(module)) for module in APIS if exists(module)),
    path("api/v1/schema/", SpectacularJSONAPIView.as_view(), name="schema"),
    path("api/v1/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
]

handler400 = "config.errors.bad_request"
handler403 = "config.errors.permission_denied"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"
