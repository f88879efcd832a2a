"""Paths of rules, exactly as docs/api.md writes them: no slash at the end."""

from django.urls import path

from delegation.api import rules, templates

urlpatterns = [
    path("delegations", rules.RulesView.as_view()),
    path("delegations/ask-everything", rules.AskEverythingView.as_view()),
    path("delegation-templates", templates.TemplatesView.as_view()),
    path("delegation-templates/<id:pk>/withdraw", templates.WithdrawTemplateView.as_view()),
    path("delegations/<id:pk>", rules.RuleView.as_view()),
    path("delegations/<id:pk>/uses", rules.UsesView.as_view()),
    path("delegations/<id:pk>/accept", rules.AcceptView.as_view()),
    path("delegations/<id:pk>/tighten", rules.TightenView.as_view()),
    path("delegations/<id:pk>/pause", rules.PauseView.as_view()),
    path("delegations/<id:pk>/revoke", rules.RevokeView.as_view()),
    path("delegations/<id:pk>/dismiss", rules.DismissView.as_view()),
]
