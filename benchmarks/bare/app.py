"""POST /notes inserts one row by the ORM: what a request costs that does nothing else.

The row is that of the study from which the bar of deciding comes: it refers to a run, and holds a
body.
It is served in the same manner as the service: granian, two workers, the same front before Django's
WSGI application with four threads each, connections kept. Nobody is asked who they are.
"""

import os
from typing import ClassVar

import django
from django.conf import settings

from benchmarks.wire import PORT

THREADS = 4  # as config.settings has it

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["BENCH_DATABASE"],
            "USER": os.environ["BENCH_USER"],
            "HOST": os.environ["BENCH_SOCKETS"],
            "PORT": str(PORT),
            "CONN_MAX_AGE": None,
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["rest_framework"],
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"stderr": {"class": "logging.StreamHandler"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
    },
    MIDDLEWARE=[],
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
        "UNAUTHENTICATED_USER": None,
    },
    ROOT_URLCONF=__name__,
    USE_TZ=True,
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402 - Django must be set up first
from django.db import models  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework import serializers  # noqa: E402
from rest_framework.permissions import AllowAny  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from config.front.application import Front  # noqa: E402
from config.front.bridge import Bridge  # noqa: E402
from config.front.changes import Changes  # noqa: E402


class Run(models.Model):
    """What the row refers to."""

    status = models.TextField()
    objects: ClassVar[models.Manager["Run"]] = models.Manager()

    class Meta:
        app_label = "bare"
        db_table = "run"

    def __str__(self) -> str:
        return self.status


class Note(models.Model):
    """One row."""

    run = models.ForeignKey(Run, models.CASCADE)
    seq = models.IntegerField()
    body = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)
    objects: ClassVar[models.Manager["Note"]] = models.Manager()

    class Meta:
        app_label = "bare"
        db_table = "note"

    def __str__(self) -> str:
        return f"note {self.pk}"


class NoteIn(serializers.Serializer[Note]):
    """What is posted."""

    run = serializers.IntegerField()
    body = serializers.JSONField()


class Notes(APIView):
    """The one view."""

    permission_classes = (AllowAny,)

    def post(self, request: Request) -> Response:
        """Check the body, insert it and answer 201 with the row's id."""
        given = NoteIn(data=request.data)
        given.is_valid(raise_exception=True)
        note = Note.objects.create(
            run_id=given.validated_data["run"], seq=0, body=given.validated_data["body"]
        )
        return Response({"id": note.pk}, status=201)

    def get(self, _request: Request) -> Response:
        """Answer that the service is up."""
        return Response({})


urlpatterns = [path("notes", Notes.as_view())]
application = Front(Bridge(get_wsgi_application(), THREADS), Changes({}))
