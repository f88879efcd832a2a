"""The Celery application. Its messages are hints: whoever sends one goes on without a broker."""

import os

from celery import Celery
from celery.signals import worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("abeyance")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def die_with_worker(**_: object) -> None:
    """Leave no pool process behind when the worker is killed outright."""
    from config.supervisor.processes import die_with_parent  # noqa: PLC0415 - Linux only

    die_with_parent()
