"""The people's pages with something on them, and who looks at each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page

from tests.browser.desk import Desk


@dataclass(frozen=True, slots=True)
class Place:
    """A page: its name, where it is, who looks (nobody: a stranger), what is clicked there first."""

    name: str
    path: str
    who: str = "bob"
    first: Callable[[Page], None] | None = None


def places(desk: Desk) -> list[Place]:
    """Have the demo's agent ask and people answer, so that every page has something to show."""
    bob = desk.service.person("bob")
    waits, large, mail = desk.refund(), desk.refund("250.00"), desk.mail()
    for _ in range(3):
        desk.note()
    done, lost = desk.refund("9.90"), desk.refund(answer_lost=True)
    for call in (done, lost):
        bob.approve(call.gate)
    done.receipt()
    done.run.complete({"refunded": "9.90"})
    lost.until("unknown")
    said = bob.get(f"gates/{done.gate}")["decisions"][-1]["id"]
    decision = f"/decisions/{waits.gate}"
    rule = rule_of_carol(desk)
    return [
        Place("sign-in", "/sign-in", ""),
        Place("sign-in-refused", "/sign-in", "", refuse_sign_in),
        Place("inbox", "/inbox"),
        Place("inbox-of-nothing", "/inbox", "ada"),
        Place("review", "/inbox/review"),
        Place("review-of-nothing-ticked", "/inbox/review", "bob", tick_nothing),
        Place("reviewed", "/inbox/review", "bob", approve_one),
        Place("inbox-filtered", "/inbox?risk=medium&q=grace"),
        Place("decision", decision),
        Place("decision-of-two", f"/decisions/{large.gate}"),
        Place("decision-typed", f"/decisions/{mail.gate}"),
        Place("decision-of-others", decision, "ada"),
        Place("edit", decision, "bob", edit),
        Place("record", f"/decisions/{done.gate}/record"),
        Place("seen", f"/decisions/{done.gate}/seen/{said}"),
        Place("decided", "/decided"),
        Place("runs", "/runs", "ada"),
        Place("run-waiting", f"/runs/{waits.run.id}"),
        Place("run-unknown", f"/runs/{lost.run.id}", "ada"),
        Place("run-done", f"/runs/{done.run.id}", "ada"),
        Place("why", f"/steps/{large.step.id}/why"),
        Place("profile", "/profile"),
        Place("password", "/profile/password"),
        Place("substitutions", "/substitutions"),
        Place("rules", "/delegation/", "carol"),
        Place("rules-none", "/delegation/"),
        Place("rule", f"/delegation/{rule}", "carol"),
        Place("rule-uses", f"/delegation/{rule}/uses", "carol"),
        Place("rule-by-hand", "/delegation/new?tool=payments.refund", "ada"),
        Place("rule-templates", "/delegation/templates", "ada"),
        Place("notices", "/notices"),
        Place("undecidable", "/undecidable", "ada"),
        Place("tenant", "/tenant"),
        Place("not-found", "/decisions/nowhere"),
    ]


def rule_of_carol(desk: Desk) -> str:
    """Return a rule that she wrote by hand and has not turned on."""
    carol = desk.service.person("carol")
    found = carol.get("delegations", status="suggested")["results"]
    if found:
        return str(found[0]["id"])
    asked = [
        {"f": "@agent", "in": ["support-bot"]},
        {"f": "amount", "le": "9.50"},
        *({"f": name, "any": True} for name in ("customer", "payment", "reference")),
    ]
    predicate = {"all": asked, "per_day": {"calls": 5, "sum": {"amount": "20"}}}
    made = carol.post("delegations", {"tool": "payments.refund", "predicate": predicate})
    return str(made["id"])


def refuse_sign_in(page: Page) -> None:
    page.get_by_label("Name or e-mail address").fill("nobody")
    page.get_by_label("Password").fill("not theirs")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()


def tick_nothing(page: Page) -> None:
    page.get_by_role("button", name="Approve the ticked ones").click()
    page.get_by_role("alert").wait_for()


def approve_one(page: Page) -> None:
    page.get_by_role("checkbox").last.check()
    page.get_by_role("button", name="Approve the ticked ones").click()
    page.get_by_role("heading", name="1 approved").wait_for()


def edit(page: Page) -> None:
    page.locator("#resp-edit > summary").click()
    page.locator("#resp-edit").get_by_label("amount").fill("7.50")
    page.get_by_role("button", name="Show what the edited call would do").click()
    page.get_by_text("What you changed").wait_for()
