"""A browser without JavaScript: it follows nothing by itself, and sends forms as a page has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, TypeVar

from django.db import connection
from django.http import HttpResponse
from django.test import Client

from tenants import scope

T = TypeVar("T")
INLINE = {"b", "i", "a", "bdi", "span", "code", "del", "ins", "time", "small", "svg", "path"}


@dataclass
class Form:
    """A form as it stands: where it goes, and what it would send."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    text: str = ""


class _Reader(HTMLParser):
    """Reads a page as a browser does: forms with their values, and the text beside them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self._form: Form | None = None
        self._area: str | None = None
        self._select: str | None = None
        self._option: str | None = None
        self._quiet = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes |= set(named)
        if tag not in INLINE:
            self.texts.append(" ")
        if tag in {"script", "style"}:
            self._quiet += 1
        if tag == "form":
            self._form = Form(named.get("action", ""))
            if named.get("method") == "post":
                self.forms.append(self._form)
        elif self._form is not None:
            self._control(tag, named)

    def _control(self, tag: str, named: dict[str, str]) -> None:
        assert self._form is not None
        name = named.get("name")
        if tag == "input" and name:
            if named.get("type") not in {"checkbox", "radio"} or "checked" in named:
                value = named.get("value", "on" if "checked" in named else "")
                # A field of one line holds none of the line breaks it was given.
                one_line = named.get("type", "text") == "text"
                self._form.fields[name] = re.sub(r"[\r\n]", "", value) if one_line else value
        elif tag == "textarea" and name:
            self._area = name
            self._form.fields[name] = ""
        elif tag == "select" and name:
            self._select = name
        elif tag == "option" and self._select is not None:
            self._choice(self._select, named)

    def _choice(self, select: str, named: dict[str, str]) -> None:
        assert self._form is not None
        if "selected" in named or select not in self._form.fields:
            self._form.fields[select] = named.get("value", "")
            self._option = None if "value" in named else select

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self._quiet -= 1
        if tag == "form":
            self._form = None
        elif tag == "textarea" and self._form is not None and self._area is not None:
            # The parser of a browser drops a line break that stands right after the tag, and sends
            # every other as two characters.
            text = self._form.fields[self._area].replace("\r\n", "\n").replace("\r", "\n")
            text = text.removeprefix("\n")
            self._form.fields[self._area] = text.replace("\n", "\r\n")
            self._area = None
        elif tag == "select":
            self._select = None
        elif tag == "option":
            self._option = None

    def handle_data(self, data: str) -> None:
        if self._form is not None:
            self._form.text += data
            if self._area is not None:
                self._form.fields[self._area] += data
            elif self._option is not None:
                self._form.fields[self._option] += data
        if not self._quiet and self._area is None:
            self.texts.append(data)


class Page:
    """What came back: its status, its text as it is read, its forms."""

    def __init__(self, response: HttpResponse) -> None:
        self.response = response
        self.status = response.status_code
        self.html = response.content.decode()
        self.location = response.headers.get("Location", "")
        self._read = _Reader(self.html)

    @property
    def text(self) -> str:
        return " ".join("".join(self._read.texts).split())

    @property
    def tags(self) -> list[str]:
        return self._read.tags

    @property
    def attributes(self) -> set[str]:
        return self._read.attributes

    @property
    def forms(self) -> list[Form]:
        return self._read.forms

    def form(self, ending: str) -> Form:
        """The one form whose action ends so."""
        (found,) = [form for form in self.forms if form.action.endswith(ending)]
        return found

    def has_form(self, ending: str) -> bool:
        return any(form.action.endswith(ending) for form in self.forms)


class Browser:
    """One person's browser; every request is served outside the test's tenant, as the server's are."""

    def __init__(self, **client: Any) -> None:
        self.client = Client(enforce_csrf_checks=True, **client)

    def get(self, path: str, **headers: str) -> Page:
        return Page(outside(lambda: self.client.get(path, headers=headers)))

    def post(self, path: str, fields: Mapping[str, str | list[str]], **headers: str) -> Page:
        return Page(outside(lambda: self.client.post(path, fields, headers=headers)))

    def send(self, page: Page, ending: str, **typed: str | None) -> Page:
        """Fill a form of the page in and send it; None unticks a box."""
        form = page.form(ending)
        fields = {**form.fields, **{k: v for k, v in typed.items() if v is not None}}
        for name in [name for name, value in typed.items() if value is None]:
            fields.pop(name, None)
        return self.post(form.action, fields)

    def follow(self, page: Page) -> Page:
        assert page.status == 303, (page.status, page.text)
        return self.get(page.location)

    def sign_in(self, name: str, password: str, onward: str = "/inbox") -> Page:
        return self.send(
            self.get(f"/sign-in?next={onward}"), "/sign-in", name=name, password=password
        )


def outside(call: Callable[[], T]) -> T:
    """Work in no tenant, and leave the test in its own again."""
    inside = scope.VARIABLE, _variable()
    scope.leave()
    try:
        return Context().run(call)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config(%s, %s, false)", inside)


def _variable() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting(%s, true), '')", [scope.VARIABLE])
        found: str = cursor.fetchone()[0]
    return found
