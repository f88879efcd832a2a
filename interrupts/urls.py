"""Pages about runs."""

from django.urls import path

from interrupts.views import acts, runs

urlpatterns = [
    path("runs", runs.RunsView.as_view(), name="runs"),
    path("runs/<uuid:pk>", runs.RunView.as_view(), name="run"),
    path("runs/<uuid:pk>/stop", acts.StopView.as_view(), name="stop-run"),
    path("runs/<uuid:pk>/cancel", acts.CancelView.as_view(), name="cancel-run"),
    path("runs/<uuid:pk>/fork", acts.ForkView.as_view(), name="fork-run"),
    path("steps/<uuid:pk>/undo", acts.UndoView.as_view(), name="undo-step"),
    path("interrupts/<uuid:pk>/answer", acts.AnswerView.as_view(), name="answer-interrupt"),
]
