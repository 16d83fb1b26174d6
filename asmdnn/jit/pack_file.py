"""The file of a kernel pack: blobs and a manifest under one checksum, read only when it holds.

    magic 8 | format version u32 | manifest length u32 | length of the rest u64 | sha256 32 | manifest, JSON | blobs

The sha256 covers every byte of the file but itself.  It guards against damage, not against malice: whoever can write a
pack can have it execute anything, as with a shared library.
"""

import hashlib
import json
import os
import stat
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.files import check_sha256, opened, replace_file
from asmdnn.records import dataclass

MAGIC = b"asmdnnPK"
FORMAT_VERSION = 1
ALIGNMENT_BYTES = 8  # of every blob, so that arrays can be used where they lie
LARGEST_FILE_BYTES = 1 << 31

_PREFIX = struct.Struct("<8sIIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEADER_BYTES = _PREFIX.size + _DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class PackEntry:
    """A blob: kind "kernel" or "plan", the key it is found by, where it lies after the manifest, its own checksum.

    name: of the kernel, or of the implementation and what it computes.  isa: the level that it was made for.
    """

    kind: str
    key: str
    name: str
    isa: str
    offset: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PackFile:
    """What was read: `facts` about the whole (versions, digests, target), the entries, and their blobs."""

    facts: Mapping[str, Any]
    entries: tuple[PackEntry, ...]
    blobs: memoryview
    sha256: str

    def blob(self, entry: PackEntry) -> memoryview:
        return self.blobs[entry.offset : entry.offset + entry.size_bytes]


def image_of(facts: Mapping[str, Any], blobs: Sequence[tuple[str, str, str, str, bytes]]) -> bytes:
    """The bytes of a pack file; `blobs` are (kind, key, name, isa, data)."""
    body, entries, places = bytearray(), [], dict[str, int]()
    for kind, key, name, isa, data in blobs:
        digest = hashlib.sha256(data).hexdigest()
        if digest not in places:  # descriptions that differ in a detail often share a plan
            body += bytes(-len(body) % ALIGNMENT_BYTES)
            places[digest] = len(body)
            body += data
        entries.append(
            PackEntry(
                kind=kind, key=key, name=name, isa=isa, offset=places[digest], size_bytes=len(data), sha256=digest
            )
        )
    manifest = json.dumps({"facts": dict(facts), "entries": [asdict(entry) for entry in entries]}).encode()
    manifest += b" " * (-(_HEADER_BYTES + len(manifest)) % ALIGNMENT_BYTES)
    prefix = _PREFIX.pack(MAGIC, FORMAT_VERSION, len(manifest), len(body))
    return prefix + hashlib.sha256(prefix + manifest + body).digest() + manifest + body


def write(path: Path, image: bytes) -> None:
    """Put `image` at `path` in one step: readers see the old file or the new one.  Raises InvalidArguments."""
    if os.path.isdir(path):
        raise InvalidArguments(f"the pack cannot be written to {path}, which is a directory: name a file")
    try:
        replace_file(path, image)
    except (OSError, ValueError) as error:  # ValueError: a null character, or one that no file name can have
        reason = f"the pack cannot be written to {str(path)!r} ({getattr(error, 'strerror', None) or error})"
        raise InvalidArguments(f"{reason}: name a file in a folder that you may write to") from None


def read(path: Path, sha256: str = "") -> PackFile:
    """The pack at `path`.  Raises InvalidArguments with the reason if it is not an intact pack of this format, or not
    the one with this sha256, in hexadecimal."""
    image = _content(path)
    check_sha256(str(path), image, sha256)
    if image[: len(MAGIC)] != MAGIC:
        raise _refusal(path, "is not a kernel pack", "make one with asmdnn pack")
    if len(image) < _HEADER_BYTES:
        raise _refusal(path, f"is truncated to {len(image)} bytes", "copy or make it again")
    _, version, manifest_bytes, body_bytes = _PREFIX.unpack_from(image)
    if version != FORMAT_VERSION:
        way_out = "make it again with this version of asmdnn"
        raise _refusal(path, f"has the pack format {version}, this version reads {FORMAT_VERSION}", way_out)
    expected = _HEADER_BYTES + manifest_bytes + body_bytes
    if len(image) != expected:
        raise _refusal(path, f"has {len(image)} bytes instead of {expected}", "copy or make it again")
    digest = hashlib.sha256(image[: _PREFIX.size])
    digest.update(memoryview(image)[_HEADER_BYTES:])
    if digest.digest() != image[_PREFIX.size : _HEADER_BYTES]:
        raise _refusal(path, "is damaged: its checksum does not hold", "copy or make it again")
    blobs = memoryview(image)[_HEADER_BYTES + manifest_bytes :]
    try:
        manifest = json.loads(image[_HEADER_BYTES : _HEADER_BYTES + manifest_bytes])
        entries = tuple(_entry(**entry) for entry in manifest["entries"])
        facts = dict(manifest["facts"])
        facts["isas"] = [str(name) for name in facts.get("isas", ())]
        found = PackFile(facts, entries, blobs, digest.hexdigest())
        intact = all(hashlib.sha256(found.blob(entry)).hexdigest() == entry.sha256 for entry in entries)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _refusal(path, "has a manifest that cannot be read", "make it again with asmdnn pack") from None
    if not intact:
        raise _refusal(path, "is damaged: an entry is not what the manifest says", "copy or make it again")
    return found


def _entry(offset: int, size_bytes: int, **words: str) -> PackEntry:
    """Raises ValueError or TypeError for an entry that is none."""
    if not all(isinstance(word, str) for word in words.values()):
        raise TypeError(words)
    if type(offset) is not int or type(size_bytes) is not int or min(offset, size_bytes) < 0:
        raise ValueError(offset, size_bytes)
    return PackEntry(offset=offset, size_bytes=size_bytes, **words)


def _content(path: Path) -> bytes:
    try:  # O_NONBLOCK: a FIFO in the place of a pack must not hang the reader
        with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd, open(fd, "rb", closefd=False) as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise _refusal(path, "is not a regular file", "name the file that asmdnn pack has written")
            if info.st_size > LARGEST_FILE_BYTES:
                raise _refusal(path, f"has {info.st_size} bytes, more than a pack can have", "name another file")
            return file.read()
    except InvalidArguments:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise _refusal(path, f"cannot be read ({reason})", "name the file that asmdnn pack has written") from None


def _refusal(path: Path, what: str, way_out: str) -> InvalidArguments:
    return InvalidArguments(f"the pack {str(path)!r} {what}: {way_out}.")
