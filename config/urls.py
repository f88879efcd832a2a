"""Every path of the service: its API under /api/v1, its health and metrics, the admin, each app's pages."""

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path
from django.utils.module_loading import autodiscover_modules
from django.views.generic import RedirectView

from config.health import urlpatterns as health
from config.metrics.page import urlpatterns as metrics
from tenants.admin.site import site

PAGES = ("tenants.urls", "approvals.urls", "interrupts.urls", "delegation.urls")
# The last one answers for every path that no other took.
APIS = ("approvals.api.urls", "interrupts.api.urls", "delegation.api.urls", "tenants.api.urls")


def exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


autodiscover_modules("admin", register_to=site)

urlpatterns: list[URLPattern | URLResolver] = [
    *(path("api/v1/", include(module)) for module in APIS if exists(module)),
    *health,
    *metrics,
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", site.urls),
    *(path("", include(module)) for module in PAGES if exists(module)),
]

handler400 = "config.errors.bad_request"
handler403 = "config.errors.permission_denied"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"
