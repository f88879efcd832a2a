"""Text of others on a page: nothing of it is markup, invisible, turned around or padded away."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.visible import hidden_characters, visible


def labels(text: str) -> list[str]:
    return [part.partition(">")[2].partition("<")[0] for part in visible(text).split("<span")[1:]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with a tab\tand\n\n\nlines", "plain, with a tab\tand\n\n\nlines"),
        ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#x27;"),
        ("café 東京 Привет", "café 東京 Привет"),
        ("👍🏽", "👍🏽"),
    ],
)
def test_plain_text_stays_as_it_is(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert hidden_characters(text) == 0


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a\u200bb", "U+200B ZWSP"),
        ("a\u202eb", "U+202E RLO"),
        ("a\u2066b", "U+2066 LRI"),
        ("a\u200fb", "U+200F RLM"),
        ("a\ufeffb", "U+FEFF BOM"),
        ("a\u00adb", "U+00AD SHY"),
        ("a\u00a0b", "U+00A0 NBSP"),
        ("a\u3000b", "U+3000"),
        ("a\u2028b", "U+2028 LINE SEP"),
        ("a\u2029b", "U+2029 PARA SEP"),
        ("a\rb", "U+000D CR"),
        ("a\x1bb", "U+001B ESC"),
        ("a\x7fb", "U+007F DEL"),
        ("a\u0085b", "U+0085"),
        ("a\u2060b", "U+2060 WJ"),
        ("a\u061cb", "U+061C ALM"),
        ("a\ufe0fb", "U+FE0F"),
        ("a\U000e0041b", "U+E0041"),
        ("a\U000e0100b", "U+E0100"),
        ("a\u3164b", "U+3164"),
        ("a\u115fb", "U+115F"),
        ("a\u2800b", "U+2800"),
        ("a\u034fb", "U+034F"),
        ("a\ue000b", "U+E000"),
        ("a\u0378b", "U+0378"),
        ("a" + "\u200b" * 1234 + "b", "U+200B ZWSP \u00d71,234"),
    ],
)
def test_what_does_not_show_is_a_label(text: str, label: str) -> None:
    assert labels(text) == [label]
    assert visible(text).startswith("a<span")
    assert visible(text).endswith("</span>b")
    assert hidden_characters(text) == len(text) - 2


@given(st.text())
def test_no_character_that_is_not_seen_is_left(text: str) -> None:
    shown = visible(text)
    assert all(char in "\n\t " or unicodedata.category(char)[0] not in "CZ" for char in shown)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a" + "\n" * 5 + "b", "5 line breaks"),
        ("a" + "\n" * 312 + "b", "312 line breaks"),
        ("a" + "\n \n\t\n\n\n" + "b", "5 line breaks and 2 spaces"),
        ("a" + " " * 41 + "b", "41 spaces"),
        ("a" + "\t " * 30 + "b", "60 spaces"),
        ("a" + "e\u0301\u0302\u0303\u0304\u0305\u0306" + "b", "6 combining marks"),
    ],
)
def test_padding_is_counted_and_the_rest_still_shown(text: str, label: str) -> None:
    assert labels(text) == [label]
    assert visible(text).endswith("b")


@pytest.mark.parametrize("text", ["a" + "\n" * 4 + "b", "a" + " " * 40 + "b", "e\u0301\u0302"])
def test_a_little_padding_is_none(text: str) -> None:
    assert labels(text) == []


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("p\u0430ypal.com", "mixed scripts: cyrillic, latin; xn--pypal-4ve.com"),
        ("bill@p\u0430ypal.com", "mixed scripts: cyrillic, latin; xn--pypal-4ve.com"),
        ("b\u00fccher.de", "xn--bcher-kva.de"),
        ("xn--pypal-4ve.com", "reads as p\u0430ypal.com; mixed scripts: cyrillic, latin"),
        ("xn--bcher-kva.de", "reads as b\u00fccher.de"),
    ],
)
def test_domains_that_only_look_right_are_marked(text: str, label: str) -> None:
    assert labels(f"see {text} now") == [label]


@pytest.mark.parametrize("text", ["paypal.com", "\u0441\u0430\u0439\u0442", "na\u00efve", "3.5"])
def test_plain_names_are_not(text: str) -> None:
    assert labels(text) == []


@pytest.mark.parametrize(
    "text",
    [
        " \t" * 100_000,
        "\n " * 100_000,
        "a." * 100_000 + "\u00e9",
        "\u00e9" * 200_000,
        "\u00e9." * 100_000,
        "\u0301" * 200_000,
        ("\n" * 4 + " ") * 50_000 + "\u00e9",
        ("\n" + " " * 39) * 5_000 + "\u00e9",
        "\u200b\u200c" * 100_000,
        "x\n" * 100_000 + "\u00e9",
        "xn--a." * 30_000,
        "a@" * 100_000 + "\u00e9",
    ],
)
def test_the_time_is_linear_in_the_text(text: str) -> None:
    visible("\u00e9")
    began = time.process_time()
    visible(text)
    assert time.process_time() - began < 5  # a square of it would take minutes
