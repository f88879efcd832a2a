"""Paths of gates and policy, exactly as docs/api.md writes them: no slash at the end.

They are tried in turn, so those that are asked for most stand first.
"""

from django.urls import path

from approvals.api import gates, policies, questions, substitutions

urlpatterns = [
    path("gates/<id:pk>/decisions", gates.DecisionsView.as_view()),
    path("gates/<id:pk>", gates.GateView.as_view()),
    path("gates", gates.GatesView.as_view()),
    path("gates/decisions", gates.BulkDecisionsView.as_view()),
    path("gates/<id:pk>/decisions/<id:decision>", gates.DecisionView.as_view()),
    path("gates/<id:pk>/assignment", gates.AssignmentView.as_view()),
    path("gates/<id:pk>/extension", gates.ExtensionView.as_view()),
    path("gates/<id:pk>/questions", questions.QuestionsView.as_view()),
    path("gates/<id:pk>/questions/<id:question>/answer", questions.AnswerView.as_view()),
    path("substitutions", substitutions.SubstitutionsView.as_view()),
    path("substitutions/<id:pk>", substitutions.SubstitutionView.as_view()),
    path("policies/current", policies.CurrentPolicyView.as_view()),
    path("policies/check", policies.CheckPolicyView.as_view()),
    path("policies/simulate", policies.SimulatePolicyView.as_view()),
    path("policies/why", policies.WhyView.as_view()),
    path("policies", policies.PoliciesView.as_view()),
    path("policies/calibration", policies.CalibrationView.as_view()),
    path("policies/overgating", policies.OvergatingView.as_view()),
]
