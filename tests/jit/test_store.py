"""The disk store: what is intact and ours comes back, everything else is absent, and nothing raises."""

import hashlib
import os
import stat
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from asmdnn import environment
from asmdnn.jit import pruning
from asmdnn.jit.store import DiskStore, default_directory, default_store, enabled

KEY, OTHER_KEY = "a" * 64, "b" * 64
NAME, CODE = "conv_f32_6x16__avx2", bytes(range(64))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def store(directory: Path) -> DiskStore:
    store = DiskStore(directory)
    store.put(KEY, NAME, CODE)
    return store


def file_of(store: DiskStore, key: str = KEY) -> Path:
    return Path(store.directory, f"{key}.kernel")


def recorded(action: Callable[[], object]) -> list[str]:
    """The messages of every warning that `action` gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(warning.message) for warning in caught]


def test_round_trip_through_another_instance(store: DiskStore) -> None:
    assert DiskStore(store.directory).get(KEY, NAME) == CODE
    assert store.get(OTHER_KEY, NAME) is None


def test_an_empty_store_is_silent(directory: Path) -> None:
    store = DiskStore(directory)
    assert recorded(lambda: (store.get(KEY, NAME), store.list(), store.clear())) == []
    assert not directory.exists()


def test_format_as_documented(store: DiskStore) -> None:
    name = NAME.encode()
    prefix = b"asmdnnKC" + struct.pack("<IIQ", 1, len(name), len(CODE))
    digest = hashlib.sha256(KEY.encode() + prefix + name + CODE).digest()
    assert file_of(store).read_bytes() == prefix + digest + name + CODE


def test_only_the_user_can_read_or_write(store: DiskStore) -> None:
    assert stat.S_IMODE(os.stat(store.directory).st_mode) == 0o700
    assert stat.S_IMODE(file_of(store).stat().st_mode) == 0o600


def test_put_replaces(store: DiskStore) -> None:
    store.put(KEY, "another", b"\xc3")
    assert (store.get(KEY, "another"), store.get(KEY, NAME)) == (b"\xc3", None)


# damage


def test_every_flipped_bit_is_noticed(store: DiskStore) -> None:
    file = file_of(store)
    image = file.read_bytes()
    for bit in range(8 * len(image)):
        damaged = bytearray(image)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        assert store.get(KEY, NAME) is None, f"bit {bit}"
    file.write_bytes(image)
    assert store.get(KEY, NAME) == CODE


def test_every_truncation_and_appended_bytes_are_noticed(store: DiskStore) -> None:
    file = file_of(store)
    image = file.read_bytes()
    for damaged in [image[:length] for length in range(len(image))] + [image + b"\0", image * 2]:
        file.write_bytes(damaged)
        assert store.get(KEY, NAME) is None, f"{len(damaged)} bytes"
        assert store.list() == ()


def test_wrong_name_or_renamed_file(store: DiskStore) -> None:
    assert store.get(KEY, NAME + "_relu") is None
    file_of(store).rename(file_of(store, OTHER_KEY))
    assert store.get(OTHER_KEY, NAME) is None


def test_a_huge_file_is_not_read(store: DiskStore) -> None:
    os.truncate(file_of(store), 1 << 40)  # sparse
    assert store.get(KEY, NAME) is None


def test_damage_is_repaired_by_the_next_put(store: DiskStore) -> None:
    file_of(store).write_bytes(b"")
    store.put(KEY, NAME, CODE)
    assert store.get(KEY, NAME) == CODE


# files and directories that others could have made


def test_symbolic_link_is_not_followed_and_gets_replaced(store: DiskStore, tmp_path: Path) -> None:
    target = tmp_path / "target"
    file_of(store).rename(target)
    file_of(store).symlink_to(target)
    image = target.read_bytes()
    assert store.get(KEY, NAME) is None
    store.put(KEY, NAME, b"\xc3")
    assert store.get(KEY, NAME) == b"\xc3"
    assert target.read_bytes() == image


def test_fifo_does_not_hang(store: DiskStore) -> None:
    file_of(store).unlink()
    os.mkfifo(file_of(store), 0o600)
    assert store.get(KEY, NAME) is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_file_writable_by_others(store: DiskStore, mode: int) -> None:
    file_of(store).chmod(mode)
    assert store.get(KEY, NAME) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_file_of_another_owner(store: DiskStore) -> None:
    os.chown(file_of(store), 12345, -1)
    assert store.get(KEY, NAME) is None
    store.put(KEY, NAME, CODE)
    assert store.get(KEY, NAME) == CODE


def assert_unusable(store: DiskStore, problem: str) -> None:
    """Nothing is read, written or removed, and all that costs one warning, whoever asks."""
    held = sorted(os.listdir(store.directory))

    def use() -> None:
        for user in (store, DiskStore(store.directory)):
            assert user.get(KEY, NAME) is None
            user.put(OTHER_KEY, NAME, CODE)
            assert (user.list(), user.clear()) == ((), 0)

    messages = recorded(use)
    assert len(messages) == 1
    assert problem in messages[0]
    assert store.directory in messages[0]
    assert "ASMDNN_CACHE_DIR" in messages[0]
    assert sorted(os.listdir(store.directory)) == held


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")
def test_directory_of_another_owner(store: DiskStore) -> None:
    os.chown(store.directory, 12345, -1)
    assert_unusable(store, "belongs to user 12345")


def test_directory_of_another_owner_as_anybody(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert_unusable(store, f"belongs to user {owner}")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_directory_writable_by_others(store: DiskStore, mode: int) -> None:
    os.chmod(store.directory, mode)
    assert_unusable(store, f"mode {mode:04o}")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720])
@pytest.mark.parametrize("steps", [1, 2])
def test_directory_below_one_that_others_can_write(tmp_path: Path, mode: int, steps: int) -> None:
    above = tmp_path / "above"
    store = DiskStore(above.joinpath(*"ab"[:steps]))
    store.put(KEY, NAME, CODE)
    above.chmod(mode)
    assert store.get(KEY, NAME) == CODE  # whoever looked before: it was safe then
    says = f"lies in {above}, which others can write to (mode {mode:04o}; chmod go-w {above}"
    assert_unusable(DiskStore(store.directory), says)
    above.chmod(mode | stat.S_ISVTX)  # as /tmp, where nobody exchanges what belongs to others
    assert recorded(lambda: DiskStore(store.directory).put(OTHER_KEY, NAME, CODE)) == []
    assert DiskStore(store.directory).get(KEY, NAME) == CODE


def test_a_link_in_a_directory_that_others_can_write(store: DiskStore, tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    (above / "link").symlink_to(store.directory)
    above.chmod(0o777)
    assert_unusable(DiskStore(above / "link"), f"lies in {above}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")
def test_directory_below_one_of_somebody_else(tmp_path: Path) -> None:
    above = tmp_path / "above"
    DiskStore(above / "cache").put(KEY, NAME, CODE)
    os.chown(above, 12345, -1)
    assert_unusable(DiskStore(above / "cache"), f"lies in {above}, which belongs to user 12345")


def test_directories_that_are_made_are_private(tmp_path: Path) -> None:
    before = os.umask(0o002)  # as where every user has a group
    try:
        assert recorded(lambda: DiskStore(tmp_path / "a" / "b").put(KEY, NAME, CODE)) == []
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


def test_directory_that_others_may_only_read(store: DiskStore) -> None:
    os.chmod(store.directory, 0o755)
    assert recorded(lambda: store.put(OTHER_KEY, NAME, CODE)) == []
    assert store.get(KEY, NAME) == store.get(OTHER_KEY, NAME) == CODE


def test_directory_after_a_symbolic_link(store: DiskStore, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(store.directory)
    assert recorded(lambda: DiskStore(link).put(OTHER_KEY, NAME, CODE)) == []
    assert store.get(OTHER_KEY, NAME) == DiskStore(link).get(KEY, NAME) == CODE
    assert DiskStore(link).clear() == 2
    assert link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give links away")
def test_directory_after_a_symbolic_link_of_somebody_else(store: DiskStore, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(store.directory)
    os.chown(link, 12345, -1, follow_symlinks=False)
    assert_unusable(DiskStore(link), "a symbolic link of user 12345")


def test_a_symbolic_link_to_a_directory_that_others_can_write(store: DiskStore, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(store.directory)
    os.chmod(store.directory, 0o777)
    assert_unusable(DiskStore(link), "mode 0777")


# its size


def filled(directory: Path, limit_bytes: int | None, kernels: int) -> DiskStore:
    """Kernels of 1000 bytes, the first one used longest ago."""
    store = DiskStore(directory, limit_bytes)
    for number in range(kernels):
        key = f"{number:064x}"
        store.put(key, "k", bytes(1000))
        if file_of(store, key).exists():
            os.utime(file_of(store, key), (number, number))
    return store


def kept(store: DiskStore) -> list[int]:
    return [int(entry.key, 16) for entry in sorted(store.list(), key=lambda entry: entry.key)]


def test_the_size_is_kept_to(directory: Path) -> None:
    store = filled(directory, 20_000, 100)
    assert 15_000 < sum(entry.size for entry in store.list()) <= 20_000 + 20_000 // 16 + 1100
    assert kept(filled(directory, None, 100)) == list(range(100)), "without a limit there is none"


def test_what_was_used_longest_ago_goes_first(directory: Path) -> None:
    store = filled(directory, None, 10)
    size = store.list()[0].size
    assert store.get(f"{2:064x}", "k")
    assert store.prune(4 * size) == (6, 6 * size)
    assert kept(store) == [2, 7, 8, 9]
    assert store.prune(4 * size) == (0, 0)
    assert store.prune(0) == (4, 4 * size)


def test_the_first_write_of_a_process_prunes_what_others_left(directory: Path) -> None:
    filled(directory, None, 50)
    store = DiskStore(directory, 10_000)
    store.put(KEY, NAME, CODE)
    assert sum(entry.size for entry in store.list()) <= 9_000
    assert store.get(KEY, NAME) == CODE


def test_a_look_at_many_files_takes_the_sizes_of_some(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(directory, None, 100)
    looked: list[str] = []
    monkeypatch.setattr(pruning, "SAMPLED", 10)
    monkeypatch.setattr(os, "stat", lambda name, stat=os.stat, **more: (looked.append(name), stat(name, **more))[1])
    DiskStore(directory, 1 << 20).put(KEY, NAME, CODE)
    assert len([name for name in looked if str(name).endswith(".kernel")]) <= 11
    DiskStore(directory, 100 * 1000).put(OTHER_KEY, NAME, CODE)
    assert len(kept(DiskStore(directory))) < 95


def test_pruning_removes_what_was_abandoned_and_nothing_else(directory: Path) -> None:
    store = filled(directory, None, 1)
    old, new = (Path(store.directory, f".{KEY}.{digit * 16}.tmp") for digit in "01")
    for path in (old, new, Path(store.directory, "README")):
        path.touch()
    os.utime(old, (0, 0))
    assert store.prune(0)[0] == 1
    assert sorted(os.listdir(store.directory)) == sorted([new.name, "README"])


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000", 1000), ("64K", 1 << 16), ("3m", 3 << 20), ("1GiB", 1 << 30), (" 2 GB ", 2 << 30)],
)
def test_sizes(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.CACHE_SIZE, text)
    assert pruning.size_limit() == size
    assert (default_store() or DiskStore("")).limit_bytes == size


def test_networks_do_not_drive_kernels_out() -> None:
    kernels = [pruning.StoredFile(float(i), 10, f"{i}.kernel") for i in range(5)]
    networks = [pruning.StoredFile(10.0 + i, 100, f"{i}.network") for i in range(5)]
    gone = {file.name for file in pruning.surplus([*kernels, *networks], 300)}
    assert gone == {f"{i}.network" for i in range(3)}, "although all kernels are older"
    assert len(pruning.surplus([*kernels, *networks], 40)) == 6, "all networks, and the oldest kernel"
    assert {file.name for file in pruning.surplus(networks, 200)} == gone, "without kernels they have all"


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "9" * 40, "1P"])
def test_a_word_that_is_no_size_costs_a_warning(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pruning._limit_of.cache_clear()
    monkeypatch.setenv(environment.CACHE_SIZE, text)
    (message,) = recorded(lambda: [pruning.size_limit() for _ in range(3)])
    assert f"ASMDNN_CACHE_SIZE={text} is not a size" in message
    assert pruning.size_limit() == 1 << 30


@pytest.mark.parametrize("name", [b"\xff\xfe", b""])
def test_nonsense_with_a_valid_checksum(name: bytes, store: DiskStore) -> None:
    for data in (CODE, b""):
        prefix = b"asmdnnKC" + struct.pack("<IIQ", 1, len(name), len(data))
        digest = hashlib.sha256(KEY.encode() + prefix + name + data).digest()
        file_of(store).write_bytes(prefix + digest + name + data)
        assert store.get(KEY, NAME) is None
        assert len(store.list()) == bool(data)


# directories that cannot be written


def test_directory_that_cannot_exist_gives_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # root ignores permissions, but cannot make a directory below a file either
    store = DiskStore(tmp_path / "file" / "cache")

    def use() -> None:
        for _ in range(3):
            store.put(KEY, NAME, CODE)
            assert store.get(KEY, NAME) is None
        assert (store.list(), store.clear()) == ((), 0)

    messages = recorded(use)
    assert len(messages) == 1
    assert "Not a directory" in messages[0]


def test_failed_write_gives_one_warning_and_leaves_nothing(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    messages = recorded(lambda: [store.put(key, NAME, CODE) for key in (KEY, OTHER_KEY)])
    assert len(messages) == 1
    assert "No space left" in messages[0]
    assert os.listdir(store.directory) == [f"{KEY}.kernel"]
    assert store.get(KEY, NAME) == CODE


def test_a_store_cleared_while_writing_is_no_reason_to_warn(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def late(*args: str, **kwargs: int) -> None:
        store.clear()
        real(*args, **kwargs)

    monkeypatch.setattr(os, "replace", late)
    assert recorded(lambda: store.put(OTHER_KEY, NAME, CODE)) == []
    assert os.listdir(store.directory) == []


# list and clear


def test_list_shows_intact_kernels(store: DiskStore) -> None:
    store.put(OTHER_KEY, "another", b"\xc3")
    store.put("c" * 64, "damaged", b"\xc3")
    file_of(store, "c" * 64).write_bytes(b"")
    another, first = store.list()
    assert (another.name, another.key, first.name, first.key) == ("another", OTHER_KEY, NAME, KEY)
    assert first.size == file_of(store).stat().st_size
    assert abs(first.mtime - time.time()) < 3600


def test_clear_removes_kernels_and_nothing_else(store: DiskStore) -> None:
    others = ["README", f"{KEY}.kernel.bak", f"{'A' * 64}.kernel", "short.kernel", ".hidden.tmp"]
    for name in others:
        Path(store.directory, name).touch()
    file_of(store, OTHER_KEY).write_bytes(b"damaged")
    Path(store.directory, f".{KEY}.{'0' * 16}.tmp").touch()
    assert store.clear() == 2
    assert sorted(os.listdir(store.directory)) == sorted(others)
    assert store.clear() == 0


# many at once

WRITER = """
import sys
from asmdnn.jit.store import DiskStore
store = DiskStore(sys.argv[1])
for turn in range(300):
    store.put(f"{turn % 7:064x}", "kernel", bytes([turn % 7]) * 20000)
"""


def test_two_processes_write_while_others_read_and_clear(directory: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", WRITER, str(directory)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    store = DiskStore(directory)
    turn = found = 0
    while any(writer.poll() is None for writer in writers):
        code = store.get(f"{turn % 7:064x}", "kernel")
        assert code in (None, bytes([turn % 7]) * 20000)
        found += code is not None
        turn += 1
        if turn % 200 == 0:
            store.clear()
    assert [writer.communicate(timeout=60)[1] for writer in writers] == [b"", b""]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert found
    assert not [name for name in os.listdir(directory) if name.endswith(".tmp")]


# where


def test_default_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CACHE_DIR", "/somewhere/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_directory() == Path("/somewhere/kernels")
    monkeypatch.setenv("ASMDNN_CACHE_DIR", "")
    assert default_directory() == Path("/xdg/asmdnn")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_directory() == Path("/home/me/.cache/asmdnn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_directory() == Path("/home/me/.cache/asmdnn")


def test_a_user_without_home_gets_an_absolute_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASMDNN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert default_directory().is_absolute()
    assert default_directory().name == f"asmdnn-{os.getuid()}"


def test_the_environment_switches_the_store_off(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(directory))
    monkeypatch.delenv("ASMDNN_CACHE", raising=False)
    store = default_store()
    assert enabled()
    assert store
    assert store.directory == str(directory)
    monkeypatch.setenv("ASMDNN_CACHE", "0")
    assert not enabled()
    assert default_store() is None


def test_the_directory_survives_a_change_of_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    store = DiskStore("relative")
    monkeypatch.chdir("/")
    store.put(KEY, NAME, CODE)
    assert file_of(store).is_relative_to(tmp_path)
    assert store.get(KEY, NAME) == CODE
