"""Every command and snippet of the README, the how-tos and the client's page, run as it stands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import abeyance
import pytest
import yaml
from abeyance import Abeyance
from abeyance.testing import FakeAbeyance

from approvals.policy import validate_policy
from approvals.tenantfile.checking import MEMBER
from config.supervisor.paths import PROJECT
from interrupts.declarations import check_tool
from interrupts.models import RunStatus, StepStatus, Suspension
from tenants.api.checks import Found, compile_check
from tests.demo.people import deciding
from tests.live import live
from tests.platform.service import free_port

README = PROJECT / "README.md"
HOW_TO = PROJECT / "docs" / "how-to"
FIRST = [HOW_TO / f"first-{what}.md" for what in ("agent", "tool", "policy")]
STATE = HOW_TO / "agent-state.md"
SDK = PROJECT / "sdk" / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def snippets(*pages: Path) -> list[Any]:
    return [
        pytest.param(text, id=f"{page.stem}-{number}")
        for page in pages
        for number, text in enumerate(blocks(page, "python"), 1)
    ]


def commands(*pages: Path) -> list[str]:
    lines = (line for page in pages for text in blocks(page, "sh") for line in text.splitlines())
    return [line.partition("  #")[0].strip() for line in lines if line.strip()]


@pytest.mark.slow
@pytest.mark.parametrize("snippet", snippets(README, *FIRST, STATE))
def test_a_snippet_runs_against_the_service(
    snippet: str, monkeypatch: pytest.MonkeyPatch, closing: None
) -> None:
    service = live().demo
    monkeypatch.setenv("ABEYANCE_URL", service.url)
    monkeypatch.setenv("ABEYANCE_KEY", service.agent_key)
    with deciding(service):
        run(snippet)


@pytest.mark.slow
def test_the_readmes_agent_says_what_became_of_a_refund(
    monkeypatch: pytest.MonkeyPatch, closing: None
) -> None:
    """The snippet both ways: approved, and rejected."""
    service = live().demo
    (snippet,) = blocks(README, "python")
    assert len(snippet.strip().splitlines()) <= 16
    monkeypatch.setenv("ABEYANCE_URL", service.url)
    monkeypatch.setenv("ABEYANCE_KEY", service.agent_key)
    with deciding(service):
        assert run(snippet)["run"].document["output"] == {"refunded": "4.50"}
    with deciding(service, refund="reject"):
        told = run(snippet)["run"].document["output"]["told"]
    assert told == "The call of payments.refund was rejected, so it was not run: not today."


@pytest.fixture
def closing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the clients that snippets leave to the end of their process."""
    made: list[Abeyance] = []

    def make(url: str, key: str) -> Abeyance:
        made.append(Abeyance(url, key))
        return made[-1]

    monkeypatch.setattr(abeyance, "Abeyance", make)
    yield
    for client in made:
        client.close()


def run(snippet: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    space = {"__name__": "snippet"} if names is None else names
    exec(compile(snippet, "snippet", "exec"), space)  # noqa: S102 - it is ours
    return space


def test_the_clients_page_runs_as_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = {"payments.refund": {"refunded": True}}
    fake = FakeAbeyance(tools, agent_tools=["local.shell"])
    monkeypatch.setattr(abeyance, "Abeyance", lambda _url, _key: fake)
    first, state, shell, testing = blocks(SDK, "python")
    names = run(first)
    assert [one.tool for one in fake.made] == ["payments.refund"]
    names["run"] = fake.run("again", "Look")
    run(state, names)
    assert names["found"].state.data == {"messages": ["hello"]}
    run(shell, names)
    assert names["receipt"].result == {"output": "up 3 days"}
    run(testing, names)
    assert names["run"].ask("Which account?") == "a-1"


@pytest.mark.parametrize("page", [README, *FIRST, STATE, SDK], ids=lambda page: page.stem)
def test_a_page_has_no_block_that_nothing_runs(page: Path) -> None:
    assert {kind for kind, _ in BLOCK.findall(page.read_text())} <= {"python", "sh", "yaml"}


def test_a_tool_of_the_how_to_can_be_registered() -> None:
    (text,) = blocks(HOW_TO / "first-tool.md", "yaml")
    (tool,) = yaml.safe_load(text)
    assert check_tool(tool) == []


def test_the_tools_of_the_how_to_of_effects_can_be_registered() -> None:
    texts = blocks(HOW_TO / "effects.md", "yaml")
    tools = [tool for text in texts for tool in yaml.safe_load(text)]
    names = ["charges.refund", "mail.send", "invoices.post", "invoices.book"]
    assert [tool["name"] for tool in tools] == names
    assert [check_tool(tool) for tool in tools] == [[], [], [], []]


def test_a_policy_of_the_how_to_can_be_published() -> None:
    texts = [yaml.safe_load(text) for text in blocks(HOW_TO / "first-policy.md", "yaml")]
    policies = [text for text in texts if "policy" in text]
    (members,) = (text["members"] for text in texts if "members" in text)
    for text in policies:
        assert validate_policy(text["policy"], text.get("groups", {})) == []
    for member in members:
        found: Found = []
        compile_check(MEMBER)(member, "", found)
        assert found == []


# Commands


def make(target: str) -> list[str]:
    """The command as it stands; what this runs in is set up already."""
    return ["make", "-o", ".venv/ready", target]


def make_up(tmp_path: Path) -> None:
    environ = live().environ | {
        "ABEYANCE_PORT": str(free_port()),
        "ABEYANCE_DATA_DIR": str(tmp_path / "data"),
    }
    up = subprocess.Popen(
        make("up"),
        cwd=PROJECT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert up.stdout
        said = []
        for line in up.stdout:
            said.append(line)
            if line.startswith("ready: "):
                break
        assert said[-1] == f"ready: http://127.0.0.1:{environ['ABEYANCE_PORT']}\n", said
        os.killpg(up.pid, signal.SIGINT)
        up.communicate(timeout=30)
        assert up.returncode in {0, 2, -signal.SIGINT}
    finally:
        if up.poll() is None:
            os.killpg(up.pid, signal.SIGKILL)
            up.communicate()


def make_demo(_tmp_path: Path) -> None:
    with deciding(live().demo):
        done = live().run(*make("demo"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 40 requests are done" in done.stdout


def make_demo_twice(_tmp_path: Path) -> None:
    done = live().run(*make("demo-twice"))
    assert done.returncode == 0, done.stdout + done.stderr


def dry_run(_tmp_path: Path) -> None:
    file = str(live().demo.places.tenant_file)
    done = live().run(".venv/bin/python", "manage.py", "apply", file, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "none was made" in done.stdout or "no changes" in done.stdout


KNOWN: dict[str, Callable[[Path], None] | None] = {
    "make up": make_up,
    "make demo": make_demo,
    "make demo-twice": make_demo_twice,
    ".venv/bin/python manage.py apply tenant.yaml --dry-run": dry_run,
    # What snippets get by the environment.
    "export ABEYANCE_URL=http://127.0.0.1:8765": None,
    "export ABEYANCE_KEY=aby_agent_…": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("command", commands(README, *FIRST))
def test_a_command_does_what_the_page_says(command: str, tmp_path: Path) -> None:
    assert command in KNOWN, "a command that nothing here runs"
    if (does := KNOWN[command]) is not None:
        does(tmp_path)


def test_the_commands_that_set_up_are_in_the_readme() -> None:
    assert {"make up", "make demo", "make demo-twice"} <= set(commands(README))
    assert "`make test`" in README.read_text()


def test_the_drawing_has_every_state_of_a_run_and_of_a_step() -> None:
    drawing = (PROJECT / "docs" / "pictures" / "states.svg").read_text()
    words = set(
        re.findall(r"\w+", re.sub(r"<(?:desc|title).*?</\w+>", "", drawing, flags=re.DOTALL))
    )
    assert [one for one in (*RunStatus, *Suspension, *StepStatus) if one not in words] == []
