"""A file that is used where it lies: a text, and sections that start at pages, under one checksum.

    magic 8 | format version u32 | text length u32 | size of the file u64 | size of what the sha256 covers u64 |
    sha256 32 | text, JSON | pages of sections | what lies apart

It is mapped read-only and private, nothing is copied, and processes share its memory.  As with a shared library, who
replaces it must put a new file in its place, as `write` does, and not write into the one that is mapped.  The sha256
covers every byte but itself and what lies apart, for which readers have a faster sum (runtime/byte_sums.py).  It guards
against damage, not against malice.
"""

import hashlib
import json
import mmap
import os
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.exact import exact
from asmdnn.files import check_sha256, opened
from asmdnn.records import dataclass

MAGIC = b"asmdnnNT"
MAGICS = (MAGIC, b"asmdnnPK")  # and that of packs of kernels, whose reader most processes need not import
FORMAT_VERSION = 2
LARGEST_TEXT_BYTES = 1 << 28
MAP_FLAGS = mmap.MAP_PRIVATE | getattr(mmap, "MAP_POPULATE", 0)  # all pages at once: every byte is read for the sum

Piece = bytes | memoryview

_PREFIX = struct.Struct("<8sIIQQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEADER_BYTES = _PREFIX.size + _DIGEST_BYTES


@exact
@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A mapped file: its text, its sections by name, all of its bytes; the mapping lives as long as any of them.

    last_used: the file's time, in seconds of the epoch.  apart: bytes that nobody has proved intact."""

    text: dict[str, Any]
    sections: Mapping[str, memoryview]
    whole: memoryview
    last_used: float
    apart: memoryview = memoryview(b"")


def image_of(text: Mapping[str, Any], sections: Mapping[str, Sequence[bytes | memoryview]]) -> bytes:
    """The bytes of a file; each section is the concatenation of its pieces."""
    return b"".join(pieces_of(text, sections))


def pieces_of(
    text: Mapping[str, Any], sections: Mapping[str, Sequence[bytes | memoryview]], apart: Sequence[Piece] = ()
) -> list[Piece]:
    """What `image_of` joins: who writes it to a file needs no second copy of the weights.  apart: what the sha256 does
    not cover."""
    sizes = {name: sum(len(piece) for piece in pieces) for name, pieces in sections.items()}
    places, end = dict[str, tuple[int, int]](), 0
    for name, size in sizes.items():
        places[name] = end, size
        end += size + -size % mmap.PAGESIZE
    head = json.dumps({**text, "sections": places}).encode()
    head += b" " * (-(_HEADER_BYTES + len(head)) % mmap.PAGESIZE)
    body: list[Piece] = [head]
    for name, pieces in sections.items():
        body += [*pieces, bytes(-sizes[name] % mmap.PAGESIZE)]
    summed = _HEADER_BYTES + len(head) + end
    prefix = _PREFIX.pack(MAGIC, FORMAT_VERSION, len(head), summed + sum(map(len, apart)), summed)
    digest = hashlib.sha256(prefix)
    for piece in body:
        digest.update(piece)
    return [prefix, digest.digest(), *body, *apart]


def is_image(path: Path) -> bool:
    """Whether a file that can be read starts as one of these."""
    return start_of(path) == MAGIC


def is_pack(path: Path) -> bool:
    """Whether it does as one of these, or as a pack of kernels."""
    return start_of(path) in MAGICS


def start_of(path: Path) -> bytes:
    """As many bytes of a file as MAGIC has; none of what cannot be read."""
    try:  # O_NONBLOCK: a FIFO must not hang the reader
        with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
            return os.read(fd, len(MAGIC)) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except (OSError, ValueError):  # ValueError: a null character in the path
        return b""


def read(path: Path, sha256: str = "") -> Image:
    """Map the file at `path`.  Raises InvalidArguments with the reason if it is not intact, or not the one with this
    sha256, in hexadecimal."""
    try:
        with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
            return map_image(fd, str(path), sha256)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArguments):
            raise
        reason = error.strerror if isinstance(error, OSError) else error
        raise refusal(str(path), f"cannot be read ({reason})", "name the file that Network.save has written") from None


def map_image(fd: int, name: str, sha256: str = "") -> Image:
    """Map an open file, which `name` is for errors.  Raises OSError, and InvalidArguments if it is not intact, or not
    the one with this sha256."""
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise refusal(name, "is not a regular file", "name the file that Network.save has written")
    if info.st_size < _HEADER_BYTES:
        raise refusal(name, f"is truncated to {info.st_size} bytes", "copy or make it again")
    whole = memoryview(mmap.mmap(fd, info.st_size, flags=MAP_FLAGS, prot=mmap.PROT_READ))
    check_sha256(name, whole, sha256)
    magic, version, text_bytes, size, summed = _PREFIX.unpack_from(whole)
    if magic != MAGIC:
        raise refusal(name, "is no saved network", "make one with Network.save")
    if version != FORMAT_VERSION:
        way_out = "make it again with this version of asmdnn"
        raise refusal(name, f"has the format {version}, this version reads {FORMAT_VERSION}", way_out)
    if size != info.st_size:
        raise refusal(name, f"has {info.st_size} bytes instead of {size}", "copy or make it again")
    if summed > size or text_bytes > min(summed - _HEADER_BYTES, LARGEST_TEXT_BYTES):
        raise refusal(name, "has parts that are larger than the file", "copy or make it again")
    digest = hashlib.sha256(whole[: _PREFIX.size])
    digest.update(whole[_HEADER_BYTES:summed])
    if digest.digest() != whole[_PREFIX.size : _HEADER_BYTES]:
        raise refusal(name, "is damaged: its checksum does not hold", "copy or make it again")
    try:
        text = json.loads(bytes(whole[_HEADER_BYTES : _HEADER_BYTES + text_bytes]))
        places = dict(text.pop("sections"))
        body = whole[_HEADER_BYTES + text_bytes : summed]
        sections = {key: section(body, *place) for key, place in places.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise refusal(name, "has a text that cannot be read", "make it again") from None
    return Image(text, sections, whole, info.st_mtime, whole[summed:])


def section(body: memoryview, offset: int, size: int) -> memoryview:
    """A part of the body.  Raises ValueError where there is none."""
    if type(offset) is not int or type(size) is not int or not 0 <= offset <= offset + size <= len(body):
        raise ValueError(offset, size)
    return body[offset : offset + size]


def refusal(name: str, what: str, way_out: str) -> InvalidArguments:
    """What is raised for a file that cannot be used."""
    return InvalidArguments(f"the pack {name!r} {what}: {way_out}.")
