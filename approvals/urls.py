"""The reviewer's pages."""

from django.urls import path

from approvals.views.assignments import AssignmentView
from approvals.views.bulk import ReviewedView, ReviewView
from approvals.views.decision import AnswerView, DecisionView, EditView
from approvals.views.extensions import ExtensionView
from approvals.views.lists import DecidedView, InboxView
from approvals.views.notices import NoticesView, UndecidableView
from approvals.views.questions import QuestionsView
from approvals.views.record import RecordView, SeenView, WithdrawView
from approvals.views.substitutions import EndSubstitutionView, SubstitutionsView
from approvals.views.why import WhyView

urlpatterns = [
    path("inbox", InboxView.as_view(), name="inbox"),
    path("inbox/review", ReviewView.as_view(), name="review"),
    path("inbox/reviewed", ReviewedView.as_view(), name="reviewed"),
    path("decided", DecidedView.as_view(), name="decided"),
    path("substitutions", SubstitutionsView.as_view(), name="substitutions"),
    path("substitutions/<id:pk>/end", EndSubstitutionView.as_view(), name="end-substitution"),
    path("notices", NoticesView.as_view(), name="notices"),
    path("steps/<id:pk>/why", WhyView.as_view(), name="why"),
    path("undecidable", UndecidableView.as_view(), name="undecidable"),
    path("decisions/<id:pk>", DecisionView.as_view(), name="decision"),
    path("decisions/<id:pk>/record", RecordView.as_view(), name="record"),
    path("decisions/<id:pk>/edit", EditView.as_view(), name="edit"),
    path("decisions/<id:pk>/assignment", AssignmentView.as_view(), name="assignment"),
    path("decisions/<id:pk>/extension", ExtensionView.as_view(), name="extension"),
    path("decisions/<id:pk>/questions", QuestionsView.as_view(), name="questions"),
    path("decisions/<id:pk>/seen/<id:decision>", SeenView.as_view(), name="seen"),
    path("decisions/<id:pk>/withdraw/<id:decision>", WithdrawView.as_view(), name="withdraw"),
    path("decisions/<id:pk>/<slug:answer>", AnswerView.as_view(), name="answer"),
]
