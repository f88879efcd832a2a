"""Secrets taken out of what came back: a far end may repeat what it was sent."""

import base64
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

MASK: Final = "•••"


class Scrubber:
    """Replaces these texts wherever they stand, in each form that carries them."""

    def __init__(self, texts: Iterable[str]) -> None:
        forms = sorted({form for text in texts for form in _forms(text)}, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, forms)), re.IGNORECASE) if forms else None

    def text(self, text: str) -> str:
        return self._found.sub(MASK, text) if self._found else text

    def value(self, value: Any) -> Any:
        """Return a JSON value in which no text, name or number holds one of them."""
        if self._found is None:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(name): self.value(child) for name, child in value.items()}
            case list():
                return [self.value(child) for child in value]
            case int() | float() if self._found.search(str(value)):
                return MASK
            case _:
                return value


def _forms(text: str) -> Iterable[str]:
    raw = text.encode()
    yield text
    yield quote(text, safe="")
    yield quote_plus(text)
    for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        yield encoded.decode().rstrip("=")
