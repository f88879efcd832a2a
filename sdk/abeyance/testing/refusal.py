"""How the service in memory refuses."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """What is answered with a problem document."""

    def __init__(self, status: int, code: str, detail: str = "", **more: Any) -> None:
        super().__init__(code)
        self.status = status
        self.document = {
            "type": f"urn:abeyance:problem:{code}",
            "title": code.replace("-", " "),
            "status": status,
            "detail": detail,
            "code": code,
            "errors": [],
            **more,
        }
