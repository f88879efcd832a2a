"""Rules tried: made, let begin, narrowed and taken away, and what decisions teach them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from delegation.models import Delegation
from delegation.services import events, learning, rebuilding, rules
from interrupts.services import steps
from tests.crashes.acts import by, keyed
from tests.crashes.scene import Scene
from tests.crashes.states import Names, named, voted

SERVICES = "delegation.services"
PREDICATE: dict[str, Any] = {
    "all": [{"f": "@agent", "in": ["bot"]}, {"f": "n", "le": "9"}],
    "per_day": {"calls": 9},
}


def suggested(scene: Scene) -> Names:
    made = rules.propose_by_hand(scene.people["alice"], "book", PREDICATE)
    return named(rule=made.pk)


def speaking(scene: Scene) -> Names:
    names = suggested(scene)
    rules.accept(scene.people["alice"], UUID(names["rule"]))
    Delegation.objects.update(check_share=0)
    return {**names, **named(run=scene.run())}


def allowed(scene: Scene) -> Names:
    names = speaking(scene)
    scene.propose(UUID(names["run"]), "book")
    return names


def published(scene: Scene) -> Names:
    made = rules.publish_template(scene.people["ada"], "book", PREDICATE)
    return named(template=made.pk)


def over(scene: Scene) -> Names:
    names = speaking(scene)
    scene.move(91 * 86_400.0)
    return names


def denied(scene: Scene) -> Names:
    names = allowed(scene)
    for policy in ("closed", "usual"):
        scene.change(partial(scene.world.publish, policy))
    return names


def by_hand(scene: Scene, _names: Names) -> None:
    rules.propose_by_hand(scene.people["alice"], "book", PREDICATE)


def publish(scene: Scene, _names: Names) -> None:
    rules.publish_template(scene.people["ada"], "book", PREDICATE)


def collected(scene: Scene) -> Names:
    names = allowed(scene)
    events.collect()
    return names


def learned(scene: Scene) -> Names:
    names = allowed(scene)
    learning.catch_up()
    return names


def on_its_own(act: Callable[[], Any]) -> Callable[[Scene, Names], Any]:
    return lambda _scene, _names: act()


def learn(scene: Scene, _names: Names) -> None:
    learning.learn([scene.people["alice"].id])


def propose(scene: Scene, names: Names) -> None:
    proposal = {"tool": "book", "arguments": {"n": 1}, "key": "k"}
    steps.propose(scene.agent, UUID(names["run"]), proposals=[proposal])


def cases() -> dict[str, tuple[str, Callable[..., Any], Callable[..., Any], bool]]:
    """Name, the service, the state, the act, and whether its work goes on by itself."""
    alice = "alice"
    tighten = by(alice, "rule", rules.tighten, change={"per_day": {"calls": 1}})
    return {
        "propose what a rule allows": (
            "interrupts.services.steps.propose",
            speaking,
            propose,
            True,
        ),
        "make a rule by hand": (f"{SERVICES}.rules.propose_by_hand", voted, keyed(by_hand), False),
        "let a rule begin": (
            f"{SERVICES}.rules.accept",
            suggested,
            by(alice, "rule", rules.accept),
            False,
        ),
        "have a rule sleep": (
            f"{SERVICES}.rules.pause",
            allowed,
            by(alice, "rule", rules.pause),
            False,
        ),
        "revoke a rule": (
            f"{SERVICES}.rules.revoke",
            allowed,
            by(alice, "rule", rules.revoke),
            True,
        ),
        "narrow a rule": (f"{SERVICES}.rules.tighten", speaking, tighten, False),
        "dismiss a suggestion": (
            f"{SERVICES}.rules.dismiss",
            suggested,
            by(alice, "rule", rules.dismiss),
            False,
        ),
        "ask about everything": (
            f"{SERVICES}.rules.ask_everything",
            allowed,
            lambda scene, _: rules.ask_everything(scene.people[alice]),
            True,
        ),
        "publish a template": (f"{SERVICES}.rules.publish_template", voted, keyed(publish), False),
        "withdraw a template": (
            f"{SERVICES}.rules.withdraw_template",
            published,
            by("ada", "template", rules.withdraw_template),
            False,
        ),
        "collect events": (f"{SERVICES}.events.collect", voted, on_its_own(events.collect), False),
        "catch up": (
            f"{SERVICES}.learning.catch_up",
            allowed,
            on_its_own(learning.catch_up),
            False,
        ),
        "learn": (f"{SERVICES}.learning.learn", collected, learn, False),
        "have rules fade": (f"{SERVICES}.learning.fade", over, on_its_own(learning.fade), False),
        "have rules heed denials": (
            f"{SERVICES}.learning.heed_denials",
            denied,
            on_its_own(learning.heed_denials),
            False,
        ),
        "have rules expire": (
            f"{SERVICES}.learning.expire",
            over,
            on_its_own(learning.expire),
            False,
        ),
        "learn again": (
            f"{SERVICES}.rebuilding.rebuild",
            learned,
            on_its_own(rebuilding.rebuild),
            False,
        ),
    }
