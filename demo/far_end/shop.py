"""The shop itself: its orders, and what each of its tools does."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from demo.far_end.ledger import Ledger

ORDERS = Path(__file__).resolve().parent.parent / "orders.csv"
Arguments = dict[str, Any]


class Refusal(Exception):
    """The shop does not do that; its text says why."""


class Shop:
    """Orders are read from a file and change only by what stands in the ledger."""

    def __init__(self, ledger: Ledger, orders: Path = ORDERS) -> None:
        self.ledger = ledger
        with orders.open(encoding="utf-8", newline="") as file:
            self._orders = {row["order"]: row for row in csv.DictReader(file)}
        self._payments = {row["payment"]: row for row in self._orders.values()}
        self.reads: Mapping[str, Callable[[Arguments], Any]] = {"orders.get": self.order}
        self.effects: Mapping[str, Callable[[Arguments], Any]] = {
            "payments.refund": self.refund,
            "notes.add": lambda arguments: {"noted": arguments["order"]},
            "db.drop_table": lambda arguments: {"dropped": arguments["table"]},
        }

    def order(self, arguments: Arguments) -> Any:
        found = self._orders.get(arguments["order"])
        if found is None:
            raise Refusal(f"there is no order {arguments['order']}")
        return {**found, "refunded": str(self.refunded(found["payment"]))}

    def refunded(self, payment: str) -> Decimal:
        """What was refunded of a payment: performed and not taken back."""
        undone = {one.undoes for one in self.ledger.entries}
        return sum(
            (
                Decimal(one.arguments["amount"])
                for one in self.ledger.entries
                if one.tool == "payments.refund"
                and one.undoes is None
                and one.arguments["payment"] == payment
                and one.external_id not in undone
            ),
            Decimal(0),
        )

    def refund(self, arguments: Arguments) -> Any:
        self._payment(arguments)
        return {"refunded": arguments["amount"], "payment": arguments["payment"]}

    def preview_refund(self, arguments: Arguments) -> Any:
        """Say what a refund would change, and change nothing."""
        paid = self._payment(arguments)
        before = self.refunded(arguments["payment"])
        after = before + Decimal(arguments["amount"])
        warnings = []
        if before:
            warnings.append(f"{before} EUR of this payment were refunded before.")
        if after > Decimal(paid["amount"]):
            warnings.append(f"That would be more than the {paid['amount']} EUR that were paid.")
        return {
            "summary": f"{paid['customer']} paid {paid['amount']} EUR for: {paid['item']}",
            "changes": [
                {
                    "object": f"payment {arguments['payment']}, refunded",
                    "before": f"{before:.2f} EUR",
                    "after": f"{after:.2f} EUR",
                }
            ],
            "warnings": warnings,
            "fresh_for": 600,
        }

    def _payment(self, arguments: Arguments) -> Mapping[str, str]:
        found = self._payments.get(arguments["payment"])
        if found is None:
            raise Refusal(f"there is no payment {arguments['payment']}")
        return found
