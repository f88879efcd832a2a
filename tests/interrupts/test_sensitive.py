"""What a tool calls sensitive stands nowhere in clear: in no table, and in no journal."""

from uuid import uuid4

import pytest
from django.db import DatabaseError, connection

from interrupts import content
from interrupts.errors import InvalidArguments
from interrupts.models import Content, Receipt
from tenants.sealing import SealBroken
from tests.database import as_owner
from tests.interrupts.house import fresh, open_of

CARD = "4111111111111111"
SCHEMA = {
    "type": "object",
    "required": ["card"],
    "properties": {"card": {"type": "string", "maxLength": 16}},
}


def everywhere(needle):
    """Where the database holds it, as its owner reads it: text, JSON and bytes."""
    found = []
    with as_owner() as owner:
        tables = owner.execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        for (table,) in tables:
            rows = owner.execute(
                f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s OR t::text LIKE %s",
                [f"%{needle}%", f"%{needle.encode().hex()}%"],
            )
            if rows.fetchone()[0]:
                found.append(table)
    return found


@pytest.fixture
def charged(house):
    for kind in ("python", "agent"):
        house.tool(f"charge.{kind}", kind=kind, sensitive=["/card"], arguments=SCHEMA)
    house.behaviour["charge.python"] = lambda given, _: {"echo": given}
    return house.run()


def test_arguments_and_results_are_sealed_at_rest(house, charged):
    (step,) = house.propose(charged, ("charge.python", {"card": CARD}))
    house.work(charged)
    step = fresh(step)
    assert house.calls[0][1] == {"card": CARD}
    assert CARD.encode() in content.get(step.arguments)
    assert CARD.encode() in content.get(step.result)
    assert {row.cipher for row in Content.objects.all()} == {"sealed"}
    assert everywhere(CARD) == []


def test_so_are_an_agents_receipt_a_persons_finding_and_an_answer(house, charged):
    step, lost = (house.propose(charged, ("charge.agent", {"card": CARD}))[0] for _ in "ab")
    house.report(house.claim(step), result={"card": CARD})
    house.lapse(house.claim(lost))
    house.recover(lost, "performed")
    assert Receipt.objects.count() == 2
    assert everywhere(CARD) == []


def test_a_refused_proposal_leaves_a_line_without_it(house, charged):
    before = charged.journal_seq
    with pytest.raises(InvalidArguments) as raised:
        house.propose(charged, ("charge.python", {"card": f"{CARD}-too-long"}))
    assert CARD not in str(raised.value.errors)
    run = fresh(charged)
    assert (run.journal_seq, run.state_version, run.last_position) == (before + 1, 1, 0)
    assert everywhere(CARD) == []


def test_what_breaks_off_says_nothing_of_it(house, charged):
    def break_off(given, call):
        raise RuntimeError(f"could not charge {given['card']}")

    house.behaviour["charge.python"] = break_off
    (step,) = house.propose(charged, ("charge.python", {"card": CARD}))
    house.work(charged)
    assert fresh(step).status == "unknown"
    assert open_of(step).evidence["tool"] == "charge.python"
    assert everywhere(CARD) == []


def test_what_is_not_sensitive_is_kept_as_it_is(house):
    house.tool("t")
    house.propose(house.run(), ("t", {"card": CARD}))
    assert everywhere(CARD) == ["interrupts_content"]


def test_a_sealed_body_opens_in_its_tenant_only(house):
    digest = content.put(b'"x"', sensitive=True)
    stored = bytes(Content.objects.get(digest=digest).body)
    assert content.unseal(house.tenant.pk, stored, "sealed") == b'"x"'
    with pytest.raises(SealBroken):
        content.unseal(uuid4(), stored, "sealed")


def test_the_app_role_rewrites_no_body(house):
    content.put(b'"x"')
    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute("UPDATE interrupts_content SET body = ''")
