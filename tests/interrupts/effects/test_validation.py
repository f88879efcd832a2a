"""What a tool's declaration may say of how it is called."""

import pytest

from interrupts.effects import needs_secret
from interrupts.effects.validation import check_effect

URL = "http://127.0.0.1:9000/effects/refund"
HTTP = {"kind": "http", "url": URL}


def places(**declaration):
    return [place for place, _ in check_effect(declaration)]


@pytest.mark.parametrize(
    "declaration",
    [
        {"executor": HTTP},
        {"executor": {**HTTP, "timeout": 0.5}, "preview": None, "reconcile": None},
        {"executor": {**HTTP, "timeout": 200}},
        {"executor": {"kind": "http", "url": "https://[2606:2800::1]:8443/a?b=c"}},
        {"executor": {"kind": "http", "url": "http://service_a.internal"}},
        {"executor": {"kind": "agent"}, "preview": {"url": URL}},
        {"executor": {"kind": "agent", "lease": 5}},
        {"executor": {"kind": "python"}, "name": "mail.send"},
        {"executor": {"kind": "python", "function": "mail.send", "timeout": 5}, "name": "post"},
        {
            "executor": HTTP,
            "preview": {"url": URL},
            "reconcile": {"url": URL + "/{key}", "settle_after": 0, "attempts": 1, "backoff": 0.1},
            "compensate": {"url": URL + "/{key}/compensate"},
        },
        {"executor": HTTP, "reconcile": {"url": "http://a.test/?key={key}"}},
        {"executor": HTTP, "compensate": {"url": "http://a.test/undo"}},
    ],
)
def test_a_sound_declaration_has_no_faults(declaration):
    assert check_effect(declaration) == []


@pytest.mark.parametrize(
    ("executor", "place"),
    [
        (None, "/executor"),
        ([], "/executor"),
        ("http", "/executor"),
        ({}, "/executor/kind"),
        ({"kind": "ftp"}, "/executor/kind"),
        ({"kind": ["http"]}, "/executor/kind"),
        ({"kind": "http"}, "/executor/url"),
        ({**HTTP, "time-out": 1}, "/executor/time-out"),
        ({**HTTP, "a/b": 1}, "/executor/a~1b"),
        ({**HTTP, "lease": 5}, "/executor/lease"),
        ({**HTTP, "timeout": 0}, "/executor/timeout"),
        ({**HTTP, "timeout": 200.1}, "/executor/timeout"),
        ({**HTTP, "timeout": "10"}, "/executor/timeout"),
        ({**HTTP, "timeout": True}, "/executor/timeout"),
        ({**HTTP, "timeout": float("nan")}, "/executor/timeout"),
        ({**HTTP, "timeout": None}, "/executor/timeout"),
        ({"kind": "agent", "lease": 0}, "/executor/lease"),
        ({"kind": "agent", "lease": 86401}, "/executor/lease"),
        ({"kind": "agent", "url": URL}, "/executor/url"),
        ({"kind": "python", "function": ""}, "/executor/function"),
        ({"kind": "python", "function": 1}, "/executor/function"),
        ({"kind": "python", "function": "no.such"}, "/executor/function"),
        ({"kind": "python", "url": URL}, "/executor/url"),
    ],
)
def test_a_fault_of_the_executor_is_told_with_its_place(executor, place):
    assert places(executor=executor) == [place]


def test_a_python_tool_without_a_function_is_looked_up_by_its_name():
    assert places(name="no.such", executor={"kind": "python"}) == ["/executor"]


@pytest.mark.parametrize(
    "url",
    [
        None,
        1,
        "",
        "refund",
        "/effects/refund",
        "//far.test/",
        "ftp://far.test/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://:80/",
        "http://far.test:/",
        "http://far.test:0/",
        "http://far.test:65536/",
        "http://far.test:x/",
        "http://user@far.test/",
        "http://user:pass@far.test/",
        "http://@far.test/",
        "http://far.test/#part",
        "http://far.test/#",
        "http://far.test/a b",
        "http://far.test/\n",
        " http://far.test/",
        "http://far.test\\@evil.test/",
        "http://fär.test/",
        "http://far.test/ä",
        "http://far,test/",
        "http://-far.test/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://[far.test]/",
        "http://far.test/{key}",
        "http://far.test/{amount}",
        "http://far.test/{",
        "http://far.test/" + "x" * 2000,
    ],
)
def test_a_url_that_can_be_no_far_end_is_refused_wherever_it_stands(url):
    assert places(executor={"kind": "http", "url": url}) == ["/executor/url"]
    assert places(executor=HTTP, preview={"url": url}) == ["/preview/url"]


@pytest.mark.parametrize(
    "url",
    [
        "http://far.test/effects",
        "http://{key}.far.test/",
        "http://far.test:{key}/",
        "http://{key}@far.test/",
        "http://far.test/{key}#{key}",
        "http://far.test/{key}/{other}",
        "http://far.test/{{key}}",
        "{key}",
    ],
)
def test_reconciling_asks_by_the_key_in_the_path_or_query(url):
    assert places(executor=HTTP, reconcile={"url": url}) == ["/reconcile/url"]


def test_a_compensation_puts_the_key_nowhere_else_either():
    faulty = {"url": "http://{key}.far.test/"}
    assert places(executor=HTTP, compensate=faulty) == ["/compensate/url"]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("settle_after", -1),
        ("settle_after", 604801),
        ("settle_after", "10"),
        ("attempts", 0),
        ("attempts", 101),
        ("attempts", 2.0),
        ("attempts", True),
        ("backoff", 0),
        ("backoff", 3601),
        ("tries", 5),
    ],
)
def test_the_bounds_of_asking_are_bounded(member, value):
    reconcile = {"url": URL + "/{key}", member: value}
    assert places(executor=HTTP, reconcile=reconcile) == [f"/reconcile/{member}"]


@pytest.mark.parametrize("part", ["preview", "reconcile", "compensate"])
@pytest.mark.parametrize("value", ["x", [], True])
def test_a_part_that_is_no_object_is_refused(part, value):
    assert places(executor=HTTP, **{part: value}) == [f"/{part}"]


@pytest.mark.parametrize("part", ["preview", "reconcile", "compensate"])
def test_a_part_without_its_url_is_refused(part):
    assert places(executor=HTTP, **{part: {}}) == [f"/{part}/url"]


def test_a_python_tool_declares_no_urls():
    faults = places(
        executor={"kind": "python", "function": "mail.send"},
        preview={"url": URL},
        compensate={"url": URL},
        reconcile={"url": URL + "/{key}"},
    )
    assert faults == ["/compensate", "/preview/url", "/reconcile/url", "/reconcile"]


@pytest.mark.parametrize(
    ("preview", "found"),
    [
        ({}, []),
        ({"function": "no.such"}, ["/preview/function"]),
        ({"function": 1}, ["/preview/function"]),
        ({"request": {"url": URL}}, ["/preview/request"]),
        ([], ["/preview"]),
    ],
)
def test_what_previews_a_python_tool_is_installed(preview, found):
    executor = {"kind": "python", "function": "mail.send"}
    assert places(executor=executor, preview=preview) == found


def test_every_fault_is_told_at_once():
    faults = places(
        executor={"kind": "http", "url": "x", "timeout": 0, "y": 1},
        preview={"url": "x"},
        reconcile={"url": "x", "attempts": 0},
        compensate=1,
    )
    assert faults == [
        "/executor/url",
        "/executor/timeout",
        "/executor/y",
        "/preview/url",
        "/reconcile/url",
        "/reconcile/attempts",
        "/compensate",
    ]


@pytest.mark.parametrize(
    ("executor", "preview", "needed"),
    [
        (HTTP, None, True),
        ({"kind": "agent"}, {"url": URL}, True),
        ({"kind": "agent"}, None, False),
        ({"kind": "python"}, None, False),
    ],
)
def test_a_secret_is_needed_for_what_is_called_over_http(executor, preview, needed):
    assert needs_secret(executor, preview=preview, reconcile=None, compensate=None) is needed
