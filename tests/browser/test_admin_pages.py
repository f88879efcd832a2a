"""What holds of every page of the admin in a browser: no fault that axe finds, nothing too wide."""

from __future__ import annotations

import pytest

from tests.browser import admin
from tests.browser.axe import faults_everywhere
from tests.browser.conftest import Open
from tests.browser.desk import Desk


@pytest.mark.slow
def test_no_page_of_the_admin_has_a_fault_in_any_width_or_scheme(open_as: Open, desk: Desk) -> None:
    page = open_as("ada")
    admin.prepare(desk, page)
    found = list(admin.paths(page))
    assert len(found) > 50, found
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda fault: said.append(str(fault)))
    wrong: list[str] = []
    for path in found:
        answer = page.goto(path)
        assert answer
        assert answer.status == 200, path
        policy = answer.headers["content-security-policy"]
        assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0], path
        wrong += [f"{path}: {one}" for one in said]
        said.clear()
        wrong += [f"{path} {one}" for one in faults_everywhere(page)]
        said.clear()
    assert not wrong, "\n".join(wrong)
