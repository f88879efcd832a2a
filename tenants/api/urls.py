"""The API's own paths. Included last: what no other path took is answered here."""

from django.urls import path, re_path

from tenants.api.docs import DocsView, SchemaView
from tenants.api.view import Nowhere

urlpatterns = [
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", DocsView.as_view(), name="docs"),
    re_path(r"", Nowhere.as_view()),
]
