"""What the people of a scenario were mailed, as it lies in the folder of the service's mails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from email import message_from_bytes, policy
from pathlib import Path
from typing import Final

Mail = Mapping[str, str]
Mails = Callable[[], list[Mail]]
# What stands after each mail of a file; what is behind the last one is still being written.
END: Final = b"\n" + b"-" * 79 + b"\n"


def in_folder(folder: Path) -> list[Mail]:
    """Return each mail as its `to`, `subject` and `body`; of one file in the order of sending."""
    return [mail for file in sorted(folder.glob("*.log")) for mail in _in_file(file)]


def _in_file(file: Path) -> Iterator[Mail]:
    for raw in file.read_bytes().split(END)[:-1]:
        mail = message_from_bytes(raw, policy=policy.default)
        body = mail.get_body()
        yield {
            "to": str(mail["To"]),
            "subject": str(mail["Subject"]),
            "body": body.get_content() if body else "",
        }


def of_people(mails: list[Mail], names: Mapping[str, str]) -> dict[str, list[Mail]]:
    """Return the mails by person; ``names`` are the people, by address."""
    found: dict[str, list[Mail]] = {name: [] for name in names.values()}
    for one in mails:
        if one["to"] in names:
            found[names[one["to"]]].append(one)
    return found
