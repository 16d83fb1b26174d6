"""The pack file: what is intact is read, everything else is refused with the reason before any of it is used."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.jit import pack_file, packs
from asmdnn.jit.packs import Pack

HEADER_BYTES = 56
BLOBS = [
    ("kernel", "a" * 64, "first__avx2", "avx2", b"\xc3" * 5),
    ("kernel", "b" * 64, "second__avx2", "avx2", b"\x90" * 31 + b"\xc3"),
    ("plan", "c" * 64, "a plan", "avx2", b"plan"),
    ("plan", "d" * 64, "the same plan", "avx2", b"plan"),
]
IMAGE = pack_file.image_of({"isas": ["avx2"], "asmdnn": "1"}, BLOBS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.pack"


def sealed(image: bytes) -> bytes:
    """`image` with a checksum that holds: what somebody makes who knows the format."""
    digest = hashlib.sha256(image[:24] + image[HEADER_BYTES:]).digest()
    return image[:24] + digest + image[HEADER_BYTES:]


def refusal(path: Path, image: bytes) -> str:
    path.write_bytes(image)
    with pytest.raises(InvalidArguments) as caught:
        pack_file.read(path)
    text = str(caught.value)
    assert str(path) in text
    assert text.count("\n") == 0
    assert text.endswith(".")
    return text


def test_what_is_written_is_read(path: Path) -> None:
    pack_file.write(path, IMAGE)
    file = pack_file.read(path)
    assert [(e.kind, e.key, e.name, e.isa, bytes(file.blob(e))) for e in file.entries] == BLOBS
    assert file.facts == {"isas": ["avx2"], "asmdnn": "1"}
    assert all(entry.offset % pack_file.ALIGNMENT_BYTES == 0 for entry in file.entries)
    assert file.entries[2].offset == file.entries[3].offset, "equal blobs are stored once"
    assert os.listdir(path.parent) == [path.name], "no temporary file stays"
    assert pack_file.image_of({"isas": ["avx2"], "asmdnn": "1"}, BLOBS) == IMAGE, "the same bytes every time"


@pytest.mark.parametrize("length", [0, 1, 7, 8, 12, 23, 24, 40, 55, 56, 57, 100, len(IMAGE) - 5, len(IMAGE) - 1])
def test_truncated(path: Path, length: int) -> None:
    text = refusal(path, IMAGE[:length])
    assert "truncated" in text or "instead of" in text or "not a kernel pack" in text


def test_every_changed_byte_is_noticed(path: Path) -> None:
    for at in range(len(IMAGE)):
        path.write_bytes(IMAGE[:at] + bytes([IMAGE[at] ^ 1]) + IMAGE[at + 1 :])
        with pytest.raises(InvalidArguments):
            pack_file.read(path)


def test_longer_than_it_says(path: Path) -> None:
    assert "instead of" in refusal(path, IMAGE + b"x")


def test_code_changed_and_checksum_of_the_whole_corrected(path: Path) -> None:
    at = IMAGE.index(b"\xc3" * 5)
    assert "not what the manifest says" in refusal(path, sealed(IMAGE[:at] + b"\xcc" + IMAGE[at + 1 :]))


def test_code_and_its_checksum_changed_but_not_that_of_the_whole(path: Path) -> None:
    forged = IMAGE.replace(b"\xc3" * 5, b"\xcc" * 5)
    old, new = (hashlib.sha256(code * 5).hexdigest().encode() for code in (b"\xc3", b"\xcc"))
    assert "checksum does not hold" in refusal(path, forged.replace(old, new))


@pytest.mark.parametrize(
    "manifest",
    [
        b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"entries": []}', b'{"facts": 1, "entries": []}',
        b'{"facts": {}, "entries": [1]}', b'{"facts": {}, "entries": [{"kind": "kernel"}]}',
        b'{"facts": {}, "entries": 1}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_manifest_that_is_none(path: Path, manifest: bytes) -> None:
    prefix = IMAGE[:12] + len(manifest).to_bytes(4, "little") + (0).to_bytes(8, "little")
    assert "manifest" in refusal(path, sealed(prefix + bytes(32) + manifest))


@pytest.mark.parametrize("change", [{"offset": 10**9}, {"offset": -8}, {"size_bytes": 10**9}, {"offset": "0"}])
def test_an_entry_that_lies_elsewhere(path: Path, change: dict[str, object]) -> None:
    length = int.from_bytes(IMAGE[12:16], "little")
    manifest = json.loads(IMAGE[HEADER_BYTES : HEADER_BYTES + length])
    manifest["entries"][0] |= change
    text = json.dumps(manifest).encode()
    prefix = IMAGE[:12] + len(text).to_bytes(4, "little") + IMAGE[16:24]
    refusal(path, sealed(prefix + bytes(32) + text + IMAGE[HEADER_BYTES + length :]))


def test_another_format(path: Path) -> None:
    assert "pack format 2" in refusal(path, sealed(IMAGE[:8] + b"\x02" + IMAGE[9:]))


def test_what_is_no_file(path: Path) -> None:
    with pytest.raises(InvalidArguments, match=r"cannot be read \(No such file"):
        pack_file.read(path)
    with pytest.raises(InvalidArguments, match=r"not a regular file|Is a directory"):
        pack_file.read(path.parent)
    os.mkfifo(path)
    with pytest.raises(InvalidArguments, match="not a regular file"):
        pack_file.read(path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "x.pack", Path("/proc/x.pack")):
        with pytest.raises(InvalidArguments, match="cannot be written"):
            pack_file.write(path, IMAGE)
    assert os.listdir(tmp_path) == []


def test_writing_replaces_in_one_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InvalidArguments, match="No space left"):
        pack_file.write(path, IMAGE)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_the_newest_pack_is_asked_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_loaded", [])
    newer = pack_file.image_of({}, [("kernel", "a" * 64, "first__avx2", "avx2", b"newer")])
    for image in (IMAGE, newer):
        path.write_bytes(image)
        packs.add(Pack.of(str(path), pack_file.read(path)))
    assert packs.find_kernel("a" * 64, "first__avx2") == b"newer"
    assert packs.find_kernel("b" * 64, "second__avx2") == BLOBS[1][4]
    assert packs.find_kernel("b" * 64, "another name") is None
    assert packs.find_kernel("c" * 64, "a plan") is None, "a plan is no kernel"
    assert packs.find_plan(["c" * 64]) == (str(path), b"plan")
    assert packs.find_plan(["e" * 64]) is None
    again = packs.add(Pack.of("elsewhere", pack_file.read(path)))
    assert again is packs.loaded()[0]
    assert len(packs.loaded()) == 2
