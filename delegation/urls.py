"""A person's pages of what runs without asking them."""

from django.urls import path

from delegation.views.acts import ActView, AskEverythingView
from delegation.views.by_hand import ByHandView
from delegation.views.rules import RulesView, RuleView, UsesView
from delegation.views.templates import TemplatesView, WithdrawTemplateView

urlpatterns = [
    path("delegation/", RulesView.as_view(), name="delegation"),
    path("delegation/new", ByHandView.as_view(), name="new-rule"),
    path("delegation/templates", TemplatesView.as_view(), name="rule-templates"),
    path(
        "delegation/templates/<id:pk>/withdraw",
        WithdrawTemplateView.as_view(),
        name="withdraw-template",
    ),
    path("delegation/ask-everything", AskEverythingView.as_view(), name="ask-everything"),
    path("delegation/<id:pk>", RuleView.as_view(), name="rule"),
    path("delegation/<id:pk>/uses", UsesView.as_view(), name="rule-uses"),
    path("delegation/<id:pk>/<slug:act>", ActView.as_view(), name="rule-act"),
]
