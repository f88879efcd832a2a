"""The list of runs and a run's page: what they say, and that looking changes nothing."""

import re
from pathlib import Path

import pytest

from interrupts import watching
from interrupts.models import Run
from interrupts.services import finding
from interrupts.views import telling
from tenants.ids import uuid7
from tenants.models import Agent, JournalEntry, Tenant
from tests.interrupts.house import (
    authority,
    fresh,
    house,
    nothing_changes,
    nothing_remembered,
    sent,
)
from tests.pages.runs import Browser, offered, text_of
from tests.threads import crew_of

__all__ = ["authority", "house", "nothing_remembered", "sent"]
ROOT = Path(__file__).parents[2]
HOSTILE = "pay <script>alert(1)</script> \u202eevil\u202c now\u200b"


def test_the_list_shows_the_newest_first_and_whose_they_are(house):
    runs = [house.run(workflow=f"flow-{n}") for n in range(3)]
    says = text_of(Browser(house, "vera").get("/runs"))
    places = [says.index(f"flow-{n}") for n in range(3)]
    assert places == sorted(places, reverse=True)
    assert all(str(run.pk)[-8:] in says for run in runs)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("status=suspended", {"held"}),
        ("suspension=safely_suspended", {"held"}),
        ("suspension=unknown_outcome", set()),
        ("workflow=other", {"other"}),
        ("agent=bot", {"held", "other"}),
        ("agent=nobody", set()),
        ("status=nonsense", {"held", "other"}),
        ("workflow=%00", {"held", "other"}),
    ],
)
def test_the_list_is_filtered(house, query, shown):
    held = house.run(workflow="held")
    house.run(workflow="other")
    house.stop(held)
    page = Browser(house, "vera").get(f"/runs?{query}")
    assert {name for name in ("held", "other") if f">{name} <span" in page} == shown


def test_the_list_is_paged_and_every_run_stands_on_one_page(house, monkeypatch):
    monkeypatch.setattr(watching, "PAGE", 2)
    runs = [house.run(workflow=f"flow-{n}") for n in range(5)]
    browser, path, seen = Browser(house, "vera"), "/runs", []
    while path:
        page = browser.get(path)
        seen += [n for n in range(4, -1, -1) if f">flow-{n} <span" in page]
        path = next((f"/runs?before={pk}" for pk in _before(page)), None)
    assert seen == [4, 3, 2, 1, 0]
    assert len(runs) == 5


def _before(page):
    return [part.split('"')[0] for part in page.split('href="?before=')[1:]]


def test_the_counters_count_held_runs_by_their_state(house):
    house.tool("t")
    house.stop(house.run())
    house.lost()
    counts = watching.suspended_counts()
    assert counts == {"safely_suspended": 1, "unknown_outcome": 1}


def test_all_that_is_not_settled_is_counted_wherever_runs_are_listed(house):
    """Also what stands behind the first of the four suspensions."""
    house.tool("mine", kind="agent")
    run = house.run()
    calls = [house.propose(run, *[("mine", {"n": n}) for n in (1, 2)], parallel=True)[:2]
             for _ in range(2)]  # fmt: skip
    done, lost, *flying = [house.claim(step) for group in calls for step in group]
    house.report(done)
    house.report(lost, "unknown")
    counts = ["1 unknown", "2 in flight", "1 partly done"]
    browser = Browser(house, "ada")
    says = text_of(browser.get("/runs"))
    assert [one for one in counts if one not in says] == []
    page = browser.get("/admin/interrupts/run/")
    assert ", ".join(counts) in page
    assert len(flying) == 2


def test_what_was_asked_to_stop_is_said_of_each_call(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.claim(step)
    house.stop(run)
    browser = Browser(house, "vera")
    assert "asked to stop: for" not in text_of(browser.get(f"/runs/{run.pk}"))
    house.stop(run, question="Now?", in_flight="cancel")
    assert "asked to stop: for" in text_of(browser.get(f"/runs/{run.pk}"))


def test_no_run_of_another_tenant_is_listed_or_shown(house):
    browser = Browser(house, "ada")
    with crew_of(other := uuid7()) as elsewhere:
        run_id = elsewhere.start(lambda: _theirs(other)).result()
    house.run(workflow="ours")
    assert "ours" in browser.get("/runs")
    assert "secret" not in browser.get("/runs")
    page = browser.get(f"/runs/{run_id}", status=404)
    assert "secret" not in page


def _theirs(pk):
    Tenant.objects.create(id=pk, slug="other", name="Other")
    agent = Agent.objects.create(name="theirs")
    return Run.objects.create(agent=agent, workflow="secret", goal="secret").pk


def test_looking_at_runs_changes_nothing(house):
    house.tool("t")
    run, _ = house.lost(n=1)
    browser = Browser(house, "olga")
    browser.get("/runs")
    with nothing_changes():
        browser.get("/runs")
        browser.get(f"/runs/{run.pk}")
        browser.get(f"/runs/{run.pk}?show=effects")
        for act in ("stop", "cancel", "fork"):
            assert browser.client.get(f"/runs/{run.pk}/{act}").status_code == 303


def test_what_the_agent_wrote_stands_in_its_box_and_hides_nothing(house):
    run = house.run(goal=HOSTILE)
    page = Browser(house, "vera").get(f"/runs/{run.pk}")
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\u200b" not in page
    box = page[page.index('class="untrusted"') :]
    assert "Written by the agent" in box[: box.index("</section>")]
    assert "RLO" in box[: box.index("</section>")]


@pytest.mark.parametrize("odd", [["x"], {"x": []}, None, 1, "x"])
def test_whatever_shape_the_agents_evidence_has_the_run_is_shown(house, odd):
    names = ("receipt", "output", "budget", "exceeded", "used", "limits", "triggers", "words")
    run = house.run()
    for reason in ("agent_requested", "input_required", "context_missing"):
        house.interrupt(house.agent, run, reason, evidence=dict.fromkeys(names, odd))
    page = Browser(house, "olga").get(f"/runs/{run.pk}")
    assert offered(page).count("resume") == 3


def test_a_page_is_not_kept_and_runs_no_foreign_script(house):
    response = Browser(house, "vera").client.get(f"/runs/{house.run().pk}")
    assert response.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    body = response.content.decode()
    assert "style=" not in body
    assert "onclick" not in body


# The four states


def test_a_safely_suspended_run_says_so(house):
    run = house.run()
    house.stop(run)
    says = text_of(Browser(house, "olga").get(f"/runs/{run.pk}"))
    assert "Safely suspended Nothing is running. Nothing is unclear." in says


def test_a_run_with_an_unknown_outcome_says_how_many(house):
    house.tool("t")
    run, _ = house.lost()
    says = text_of(Browser(house, "olga").get(f"/runs/{run.pk}"))
    assert "Unknown outcome We can\u2019t tell if an effect happened. 1 call may or may not" in says
    assert "Resume is off" in says


def test_a_step_that_is_set_aside_is_shown_so(house):
    house.tool("t", effect="idempotent")
    run, step = house.lost()
    house.break_off("t")
    for _ in range(2):
        finding.find_out(step.pk, "w")  # sends the call again
    says = text_of(Browser(house, "olga").get(f"/runs/{run.pk}"))
    assert "set aside: its tries ended without a word" in says


def test_a_run_that_is_still_cancelling_says_what_is_in_flight(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.claim(step)
    house.stop(run)
    says = text_of(Browser(house, "olga").get(f"/runs/{run.pk}"))
    assert "Still cancelling Work is in flight right now. 1 call is being finished." in says
    assert "Step 1, mine : for" in says


def test_a_partly_done_run_says_what_happened_and_what_did_not(house):
    house.tool("mine", kind="agent")
    run = house.run()
    first, _ = house.propose(run, ("mine", {}), ("mine", {}))
    house.report(house.claim(first))
    house.stop(run)
    says = text_of(Browser(house, "olga").get(f"/runs/{run.pk}"))
    assert "Partially complete Some effects happened, some did not. 1 effect happened" in says
    assert "1 step did not yet" in says


def test_an_ended_run_offers_no_stop_and_says_what_stands(house):
    run = house.run()
    house.cancel(run)
    page = Browser(house, "olga").get(f"/runs/{run.pk}")
    assert fresh(run).status == "cancelled"
    assert "Hold this run" not in page
    assert "An ended run does not go on." in text_of(page)


# The journal


def test_the_journal_tells_everything_in_order_without_gaps(house, monkeypatch):
    monkeypatch.setattr(watching, "ENTRIES", 4)
    house.tool("t")
    run, _ = house.lost(n=1)
    browser, after, seen = Browser(house, "vera"), 0, []
    while True:
        page = browser.get(f"/runs/{run.pk}?after={after}")
        seen += [int(part.split('"')[0]) for part in page.split('<li id="e-')[1:]]
        if "Further on" not in page:
            break
        after = seen[-1]
    entries = JournalEntry.objects.filter(stream=run.pk).order_by("seq")
    assert seen == list(entries.values_list("seq", flat=True))


@pytest.mark.parametrize("show", ["effects", "decisions"])
def test_the_journal_is_filtered(house, show):
    house.tool("t")
    run, step = house.lost(n=1)
    house.recover(step, "performed", external_id="tx-1")
    page = Browser(house, "vera").get(f"/runs/{run.pk}?show={show}")
    seqs = {int(part.split('"')[0]) for part in page.split('<li id="e-')[1:]}
    rows = JournalEntry.objects.filter(stream=run.pk, kind__in=watching.FILTERS[show])
    assert seqs == set(rows.values_list("seq", flat=True))
    assert len(seqs) > 0


def test_receipts_show_their_reference_and_people_their_name(house):
    house.tool("t")
    run, step = house.lost(n=1)
    house.recover(step, "performed", external_id="tx-1")
    says = text_of(Browser(house, "vera").get(f"/runs/{run.pk}"))
    assert "receipt: it was done" in says
    assert "reference tx-1" in says
    assert f"By {house.people['olga'].name}." in says


def test_children_stand_in_the_tree_each_with_its_own_state(house):
    run = house.run(workflow="mother")
    child = house.run(workflow="daughter", parent=run.pk)
    house.stop(child)
    page = Browser(house, "vera").get(f"/runs/{run.pk}")
    tree = page[page.index('id="h-tree"') :]
    says = " ".join(tree[: tree.index("</section>")].split())
    assert f'href="/runs/{child.pk}"' in says
    assert "Running" in says
    assert "Safely suspended" in says


# Who is offered what


@pytest.mark.parametrize(
    ("who", "answers"),
    [
        ("ada", ["resume", "revise", "cancel"]),
        ("olga", ["resume", "revise", "cancel"]),
        ("alice", []),
        ("vera", []),
    ],
)
def test_answers_are_offered_to_those_who_may_give_them(house, who, answers):
    run = house.run()
    house.stop(run)
    page = Browser(house, who).get(f"/runs/{run.pk}")
    assert offered(page) == answers
    assert ("This is answered by an operator, an admin" in text_of(page)) == (not answers)


def test_who_may_decide_a_step_may_stop_and_revise(house):
    run = house.run()
    house.stop(run)
    house.policy.deciders.add(house.people["bob"].id)
    page = Browser(house, "bob").get(f"/runs/{run.pk}")
    assert offered(page) == ["revise"]
    assert "Hold this run" in page


def test_a_viewer_who_asked_for_the_run_only_looks(house):
    run = house.run(requested_by=house.people["vera"].name)
    house.interrupt(house.agent, run, "input_required", question="how many?")
    page = Browser(house, "vera").get(f"/runs/{run.pk}")
    assert offered(page) == []
    assert "Hold this run" not in page


def test_every_kind_of_entry_that_is_written_has_words_of_its_own():
    """Kinds are spelt where they are written; one that is not known here shows as its bare name."""
    written = set()
    for folder in ("interrupts", "approvals"):
        for path in (ROOT / folder).rglob("*.py"):
            written |= set(re.findall(r'note\(\s*"([a-z]+\.[a-z_]+)"', path.read_text()))
    assert len(written) > 20
    assert written - set(telling.known_kinds()) == set()
