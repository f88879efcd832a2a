import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from config.handler import Handler  # noqa: E402 - Django is set up first

application = Handler()
