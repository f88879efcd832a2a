import os
from multiprocessing import parent_process

from config.wsgi import application as wsgi  # sets Django up

# isort: split
from django.conf import settings
from django.urls import get_resolver

len(get_resolver().url_patterns)  # loads every view now, in place of at the first request

from config.celery import app as hints  # noqa: E402 - Django is set up first
from config.database import connect_parameters  # noqa: E402
from config.front.application import Front  # noqa: E402
from config.front.bridge import Bridge  # noqa: E402
from config.front.changes import Changes  # noqa: E402
from config.supervisor.processes import die_with_parent  # noqa: E402

if "ABEYANCE_SUPERVISED" in os.environ and (starter := parent_process()) and starter.pid:
    die_with_parent(starter.pid)

hints.send_from_a_thread()
application = Front(
    Bridge(wsgi, settings.ABEYANCE_WEB_THREADS),
    Changes(connect_parameters(settings.DATABASES["sweep"])),
)
