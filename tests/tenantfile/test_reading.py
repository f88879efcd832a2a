"""YAML is read strictly: what could be read in two ways is told with its line or its path."""

import pytest

from approvals.tenantfile.reading import MAX_BYTES, UnreadableFile, parse_documents


def refused(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(UnreadableFile) as fault:
        parse_documents(raw, "file")
    return str(fault.value)


def test_a_file_holds_several_documents_and_json_is_yaml() -> None:
    text = '---\ntenant: a\n---\n{"tenant": "b"}\n---\n'
    assert parse_documents(text.encode(), "file") == [{"tenant": "a"}, {"tenant": "b"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tenant: a\nname: x\nname: y\n", "file: line 3, column 1: the key 'name' is there twice"),
        ("tenant: a\npolicy: {rules: [], rules: []}", "line 2, column 21: the key 'rules'"),
        ("a: b: c", "line 1, column 5"),
        ("a: [1, 2", "line"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: *b", "undefined alias"),
        ("", "holds no document"),
        ("# nothing\n---\n", "holds no document"),
        (b"a: \xff", "not UTF-8 at byte 3"),
        ("a: \x01", "file: "),
        ("[" * 100_000, "file: "),
        ("a: 2026-13-45", "file: line 1, column 4: "),
        (f"a: {'9' * 5000}", "line 1, column 4: "),
        ("a: [1, !!int x]", "line 1, column 8: "),
        ("a: !!bool x", "line 1, column 4: "),
        ("a: !!timestamp x", "line 1, column 4: "),
        ("a: 1\nb: 0600", "line 2, column 4: write 0600 as plain digits"),
        ("a: 1:30", "line 1, column 4: write 1:30 as plain digits"),
        ("a: 1:30.5", "line 1, column 4: "),
    ],
)
def test_what_is_no_yaml_of_ours_is_told_with_its_line(text: str | bytes, told: str) -> None:
    assert told in refused(text)


def test_a_number_is_what_it_looks_like_and_text_what_is_quoted() -> None:
    text = "a: [0, -1, 0.5, 0x1F, 1.5e+3, '0600', \"1:30\", 09:00, 1e3]"
    read = [0, -1, 0.5, 31, 1500.0, "0600", "1:30", "09:00", "1e3"]
    assert parse_documents(text.encode(), "file") == [{"a": read}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tenant: acme\nmembers: [{no: 1}]", "acme: members/0"),
        ("tenant: acme\npolicy: {since: 2026-01-01}", "acme: policy/since: "),
        ("tenant: acme\nx: .nan", "acme: x: "),
        ("tenant: acme\nx: .inf", "acme: x: "),
        ("tenant: acme\nx: 9007199254740993", "acme: x: "),
        ('tenant: acme\nx: "\\0"', "acme: x: "),
        ("tenant: acme\nx: !!binary aGk=", "acme: x: "),
        ("tenant: acme\n1: x", "acme: document: "),
        ("tenant: acme\nx: " + "[" * 70 + "]" * 70, "acme: x/0/0"),
        ("tenant: acme\nx: &x [*x]", "acme: x/0/0"),
        ("- tenant\n- {1: 2}", "document 1: 1: "),
        ("tenant: 7\nx: .nan", "document 1: x: "),
    ],
)
def test_what_json_cannot_say_is_told_with_its_path(text: str, told: str) -> None:
    assert told in refused(text)


def test_aliases_cannot_make_a_small_text_a_huge_file() -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
    assert "Holds more than" in refused(f"a0: &a0 x\n{levels}\n")


def test_a_file_over_its_bound_is_not_read(tmp_path) -> None:
    from approvals.tenantfile.reading import read_documents

    file = tmp_path / "large.yaml"
    file.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(UnreadableFile, match="larger than"):
        read_documents(file)
    with pytest.raises(UnreadableFile, match="No such file"):
        read_documents(tmp_path / "none.yaml")
    with pytest.raises(UnreadableFile, match="directory"):
        read_documents(tmp_path)
