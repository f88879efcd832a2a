"""Says once, where there is no browser, that the pages are not tried in one."""

from __future__ import annotations

import pytest

from tests.browser import chromium


def test_there_is_a_browser_to_try_the_pages_in() -> None:
    if chromium.program() is None and not chromium.is_required():
        pytest.skip(chromium.MISSING)
    assert chromium.program(), chromium.MISSING
