"""The reviewer's pages."""

from django.urls import path

from approvals.views.lists import DecidedView, InboxView

urlpatterns = [
    path("inbox", InboxView.as_view(), name="inbox"),
    path("decided", DecidedView.as_view(), name="decided"),
]
