"""Which arguments have one form, and which are asked about whatever was approved."""

from dataclasses import replace
from decimal import Decimal

import pytest

from delegation.calls import Asked, request_of
from delegation.canonical import LONGEST, Unclear, canonical, read
from delegation.records import Tool
from tests.delegation.histories import FILE, MAIL, REFUND, call

FREE = Tool("run", 1, "low", {"command": "text", "host": "enum"})


def unclear(tool=REFUND, **given):
    with pytest.raises(Unclear) as refused:
        canonical(call(0, tool, **given))
    return refused.value


@pytest.mark.parametrize(
    "amount",
    [
        float("nan"),
        float("inf"),
        1e400,
        -0.0,
        -1,
        "-5000",
        "-0",
        "NaN",
        "1e3",
        "1e400",
        Decimal("1e400"),
        Decimal("-0"),
        Decimal("NaN"),
        True,
        None,
        [1],
        2**53,
        "9007199254740993",
        "0x10",
        "1_000",
        " 7",
        "07",
        "\u0667",
        "7.",
        "1,5",
        "0.0000000000001",
    ],
    ids=repr,
)
def test_an_amount_without_one_plain_form_is_no_amount(amount):
    assert unclear(amount=amount).name == "amount"


@pytest.mark.parametrize(
    ("amount", "read_as"),
    [
        (20, "20"),
        (0, "0"),
        (20.5, "20.5"),
        (0.1, "0.1"),
        ("3712.0", "3712"),
        (2**53 - 1, "9007199254740991"),
    ],
    ids=repr,
)
def test_an_amount_is_read_exactly(amount, read_as):
    assert canonical(call(0, amount=amount)).amounts["amount"] == Decimal(read_as)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " late",
        "late\n",
        "la\x00te",
        "la\u200bte",
        "la\u202ete",
        "la\u00adte",
        "late\u2066",
        "la\u00a0te",
        "\uff4c\uff41\uff54\uff45",
        "\ufb01ne",
        "l\u0430te",
        "\u043e\u0440",
        "re\u0301sume",
        "late; rm -rf /",
        "late && true",
        "`id`",
        "$(id)",
        "a' OR '1'='1",
        "x -- y",
        "*",
        "../late",
        "=5",
        "x" * (LONGEST + 1),
    ],
    ids=ascii,
)
def test_a_value_that_reads_in_two_ways_is_none_of_a_list(text):
    assert unclear(reason=text).name == "reason"


@pytest.mark.parametrize("given", [1.5, ["late"], {"a": 1}, 2**60], ids=repr)
def test_only_texts_whole_numbers_and_truths_are_values_of_a_list(given):
    assert unclear(reason=given).name == "reason"


def test_a_number_and_its_text_are_two_values():
    values = {
        canonical(call(0, reason=one)).values["reason"] for one in ("5", 5, True, "true", None)
    }
    assert len(values) == 5


@pytest.mark.parametrize("text", ["überfällig", "просрочено", "遅延", "In progress", "café"])
def test_words_of_other_languages_are_values(text):
    assert canonical(call(0, reason=text)).values["reason"] == text


@pytest.mark.parametrize(
    "domain",
    [
        "PARTNER.example",
        "partner.example.",
        "xn--partner-abc.example",
        "p\u0430rtner.example",
        "partner。example",
        "partner",
        "partner.example/evil",
        "https://partner.example",
        "partner.example@evil.example@partner.example",
        "a b@partner.example",
        '"x"@partner.example',
        "partner.example:443",
        "partner..example",
        "-partner.example",
        "127.0.0.1",
        "*.example",
        "partner.example,evil.example",
        "partner.example\r\nBcc: x@evil.example",
    ],
    ids=ascii,
)
def test_a_domain_that_could_be_read_as_another_is_none(domain):
    assert unclear(MAIL, to=domain, template="receipt").name == "to"


@pytest.mark.parametrize("to", ["partner.example", "ann.lee+x@partner.example"])
def test_a_mail_address_stands_for_its_whole_domain(to):
    asked = canonical(call(0, MAIL, to=to, template="receipt"))
    assert asked.values["to"] == "partner.example"


@pytest.mark.parametrize(
    "path",
    [
        "/data/reports/../../etc/key",
        "/data/reports/./a",
        "/data//reports/a",
        "/data/reports/",
        "/data\\reports\\a",
        "/data/%2e%2e/a",
        "/data/a\x00.txt",
        "~/a",
        "$HOME/a",
        "/data/*",
        "/data/-rf",
        "file:///data/a",
        "/data/ a",
        "/data/r\u0435ports/a",
        "",
        "/",
        5,
    ],
    ids=ascii,
)
def test_a_path_that_is_not_normalised_is_none(path):
    assert unclear(FILE, path=path).name == "path"


@pytest.mark.parametrize(
    ("path", "folder"),
    [("/data/app/a.txt", "/data/app"), ("/a", "/"), ("a/b.txt", "a"), ("b.txt", ".")],
)
def test_a_path_stands_for_the_folder_that_its_file_is_in(path, folder):
    assert canonical(call(0, FILE, path=path)).values["path"] == folder


def test_an_argument_that_is_not_declared_or_missing_has_no_form():
    assert unclear(bcc="drop@evil.example").name == "bcc"
    assert unclear(MAIL, to="partner.example").name == "template"
    assert unclear(**{"@agent": "agent-a"}).name == "arguments"


@pytest.mark.parametrize("command", ["ls", "SELECT 1", "Dear all"])
def test_free_text_is_never_learned(command):
    assert unclear(FREE, command=command, host="web").why == "free text is never learned"


@pytest.mark.parametrize("given", [{"env": "st\u200baging"}, {"env": ""}])
def test_what_is_known_around_a_call_is_held_to_the_same(given):
    assert unclear(context=given).name == "@env"


@pytest.mark.parametrize(
    "text",
    [
        b'{"amount": 5, "amount": 5000}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"amount": NaN}',
        b'{"amount": -Infinity}',
        b"[1]",
        b"{",
        b"\xff",
        b"[" * 100_000,
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_arguments_that_two_readers_understand_differently_are_refused(text):
    with pytest.raises(Unclear):
        read(text)


def test_arguments_are_read_with_exact_numbers():
    assert read(b'{"amount": 0.10, "n": 3}') == {"amount": Decimal("0.10"), "n": 3}


@pytest.mark.parametrize(
    "order",
    [
        "DROP TABLE orders",
        "o-1 and all others",
        "o-1;reboot",
        "$(reboot)",
        "o-1'OR'1'='1",
        "-rf",
        "--all",
        "*",
        "../o-1",
        "http://evil.example",
        "{{secret}}",
    ],
)
def test_what_reads_as_more_than_an_identifier_is_none(order):
    assert unclear(order=order).name == "order"


@pytest.mark.parametrize("order", ["o-1", "INV_2026.7/a", "ann@shop.example", 77, "-"])
def test_an_identifier_of_one_word_is_free(order):
    assert canonical(call(0, order=order)).free == {"order"}


def request(tool, body):
    return request_of(Asked("s", 0.0, "agent-a", "refunds", ""), tool, body)


def test_an_object_without_members_is_not_the_same_as_its_absence():
    tool = Tool("list", 1, "low", {"filter.tier": "enum"})
    assert canonical(request(tool, b'{"filter":{"tier":"gold"}}')).values["filter.tier"] == "gold"
    for body in (
        b'{"filter":{"tier":"gold"},"everybody":{}}',
        b'{"filter":{"tier":"gold","or":{}}}',
        b'{"filter":{"tier":{}}}',
        b'{"filter":{"tier":"gold"},"everybody":[]}',
        b'{"filter":{}}',
        b'{"filter.tier":"gold"}',
    ):
        with pytest.raises(Unclear):
            canonical(request(tool, body))


def test_what_is_of_high_risk_or_of_another_role_is_never_learned():
    assert unclear(replace(REFUND, risk="high")).name == "tool"
    assert unclear(replace(FREE, roles={"command": "sql", "host": "enum"}), command="x", host="web")
