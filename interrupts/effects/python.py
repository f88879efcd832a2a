"""The executor `python`: functions that installed packages offer in `abeyance.tools`.

A tool is `function(arguments, call) -> result`, or a `PythonTool` that can also be previewed,
reconciled and undone. It runs in the worker process, in the thread that asked. Nothing can stop
it from outside: `call.timeout` says how long it may take, and what it waits for (a socket, a lock,
a subprocess) should be given that limit. The service bounds the attempt, not the code: when the
lease (the timeout and two seconds) has lapsed the outcome is unknown, whatever the function does
later, and its late receipt then settles it.

What a tool says: it returns (succeeded), returns an `Observed` (what that says), raises
`NotPerformed` (nothing was begun, send it again) or `Refused` (nothing was done, for good).
Any other exception says nothing about what it did, so the outcome is unknown.
"""

import inspect
import json
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from config.errors import Problem
from config.jsontext import canonical, parse
from interrupts.effects.base import (
    MAX_RESULT_BYTES,
    Call,
    Finding,
    Observed,
    Outcome,
    Preview,
    PreviewFailed,
    Reconciled,
    plain,
)
from interrupts.effects.previews import UnreadablePreview, preview_of

GROUP: Final = "abeyance.tools"

logger = logging.getLogger(__name__)

type Arguments = dict[str, Any]
