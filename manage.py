#!/usr/bin/env python3
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
from django.core.management import execute_from_command_line

from config.supervisor.failures import CannotStart

try:
    execute_from_command_line(sys.argv)
except CannotStart as failure:
    sys.exit(f"abeyance: {failure}")
