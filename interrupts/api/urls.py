"""Paths of the engine's API, exactly as docs/api.md writes them: no slash at the end.

They are tried in turn, so those that are asked for most stand first.
"""

from django.urls import path

from interrupts.api import catalogue, interrupts, journals, runs, steps

urlpatterns = [
    path("runs/<id:pk>/steps", steps.StepsView.as_view()),
    path("steps/<id:pk>", steps.StepView.as_view()),
    path("runs", runs.RunsView.as_view()),
    path("runs/<id:pk>", runs.RunView.as_view()),
    path("runs/<id:pk>/children", runs.ChildrenView.as_view()),
    path("runs/<id:pk>/claim", runs.ClaimRunView.as_view()),
    path("runs/<id:pk>/usage", runs.UsageView.as_view()),
    path("runs/<id:pk>/acknowledge", runs.AcknowledgeView.as_view()),
    path("runs/<id:pk>/complete", runs.CompleteView.as_view()),
    path("runs/<id:pk>/fail", runs.FailView.as_view()),
    path("runs/<id:pk>/cancel", runs.CancelView.as_view()),
    path("runs/<id:pk>/fork", runs.ForkView.as_view()),
    path("runs/<id:pk>/checkpoints", runs.CheckpointsView.as_view()),
    path("runs/<id:pk>/interrupts", interrupts.OpenInterruptView.as_view()),
    path("runs/<id:pk>/journal", journals.JournalView.as_view()),
    path("runs/<id:pk>/events", journals.RunEventsView.as_view()),
    path("steps/<id:pk>/claim", steps.ClaimStepView.as_view()),
    path("steps/<id:pk>/reconciliation", steps.ReconciliationView.as_view()),
    path("steps/<id:pk>/compensation", steps.CompensationView.as_view()),
    path("attempts/<id:pk>/heartbeat", steps.HeartbeatView.as_view()),
    path("attempts/<id:pk>/receipt", steps.ReceiptView.as_view()),
    path("checkpoints/<id:pk>", runs.CheckpointView.as_view()),
    path("interrupts", interrupts.InterruptsView.as_view()),
    path("interrupts/<id:pk>", interrupts.InterruptView.as_view()),
    path("interrupts/<id:pk>/response", interrupts.ResponseView.as_view()),
    path("tools", catalogue.ToolsView.as_view()),
    path("tools/<str:name>", catalogue.ToolView.as_view()),
    path("freezes", catalogue.FreezesView.as_view()),
    path("freezes/reach", catalogue.FreezeReachView.as_view()),
    path("freezes/<id:pk>", catalogue.FreezeView.as_view()),
    path("events", journals.EventsView.as_view()),
]
