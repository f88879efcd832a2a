"""The service's secrets: given, or made once and kept private."""

import base64
import json
import threading
from pathlib import Path

import pytest

from config.supervisor.failures import CannotStart
from config.supervisor.keyfile import Keys, load_keys
from config.supervisor.paths import DataFolder

KEY = base64.b64encode(b"k" * 32).decode()


def test_keys_are_made_once_and_private(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    first = load_keys(folder, {})
    assert load_keys(folder, {}) == first
    assert len(first.master[first.current]) == 32
    assert folder.keys.stat().st_mode & 0o777 == 0o600
    assert list(folder.root.iterdir()) == [folder.keys]


def test_two_first_starts_agree(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    found: list[Keys] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        found.append(load_keys(folder, {}))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(keys == found[0] for keys in found)


def test_given_keys_leave_no_file(tmp_path: Path) -> None:
    environ = {"ABEYANCE_SECRET_KEY": "s", "ABEYANCE_MASTER_KEYS": f"new:{KEY},old:{KEY}"}
    keys = load_keys(DataFolder(tmp_path / "data"), environ)
    assert (keys.secret_key, keys.current, set(keys.master)) == ("s", "new", {"new", "old"})
    assert not (tmp_path / "data").exists()


def test_the_key_in_use_can_be_named(tmp_path: Path) -> None:
    environ = {
        "ABEYANCE_SECRET_KEY": "s",
        "ABEYANCE_MASTER_KEYS": f"new:{KEY},old:{KEY}",
        "ABEYANCE_CURRENT_KEY": "old",
    }
    assert load_keys(DataFolder(tmp_path), environ).current == "old"


@pytest.mark.parametrize(
    "listed", ["", "k1", "k1:abc", f":{KEY}", "k1:" + base64.b64encode(b"short").decode()]
)
def test_a_key_that_is_none_is_refused_and_not_quoted(tmp_path: Path, listed: str) -> None:
    environ = {"ABEYANCE_SECRET_KEY": "s", "ABEYANCE_MASTER_KEYS": listed or "x:"}
    with pytest.raises(CannotStart) as refusal:
        load_keys(DataFolder(tmp_path), environ)
    assert KEY not in str(refusal.value)


@pytest.mark.parametrize("text", [json.dumps({"secret_key": "s"}), "{", ""])
def test_a_kept_file_that_is_damaged_is_told(tmp_path: Path, text: str) -> None:
    folder = DataFolder(tmp_path)
    folder.keys.write_text(text)
    with pytest.raises(CannotStart, match=str(folder.keys)):
        load_keys(folder, {})
