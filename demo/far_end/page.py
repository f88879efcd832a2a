"""The ledger as people read it: plain text."""

from __future__ import annotations

from collections.abc import Iterator

from demo.far_end.faults import Faults
from demo.far_end.ledger import Entry, Ledger

COLUMNS = "{:>4}  {:<19}  {:<16}  {:<44}  {:<12}  {}"


def ledger_page(ledger: Ledger, faults: Faults) -> str:
    """Show every effect once, the newest last: what stands here happened."""
    return "\n".join(
        [
            "The shop's ledger: what really happened, whoever believes what",
            "",
            COLUMNS.format("no.", "time (UTC)", "tool", "what", "caller", "key"),
            *_rows(ledger),
            "",
            "Faults ordered",
            str(faults),
            "",
        ]
    )


def _rows(ledger: Ledger) -> Iterator[str]:
    for one in ledger.entries:
        at = one.at[:19].replace("T", " ")
        yield COLUMNS.format(one.number, at, one.tool, what(one), one.caller, one.key or "none")
    if not ledger.entries:
        yield "      nothing yet"


def what(entry: Entry) -> str:
    """Say in a line what an effect was."""
    arguments = entry.arguments
    if entry.undoes:
        return f"takes back {entry.undoes}"
    match entry.tool:
        case "payments.refund":
            return f"{arguments['amount']} EUR of {arguments['payment']}"
        case "notes.add":
            return f"{arguments['order']}: {arguments['text']}"[:44]
        case _:
            return ", ".join(f"{name} {value}" for name, value in arguments.items())[:44]
