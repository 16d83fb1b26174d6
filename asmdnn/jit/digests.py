"""What a kernel is kept under on disk: the text of its spec, and a digest of the sources that generate it."""

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

SOURCE_PACKAGES = ("generators", "isa")  # every byte of a kernel comes from the spec, from these, and from PeachPy


def spec_text(spec: object) -> str:
    """The text that identifies a spec: its class with module, and its fields."""
    return f"{type(spec).__module__}.{spec!r}"


def code_text(spec: object) -> str:
    """The text that identifies the bytes of a kernel: of its `code_spec`, where a spec has numbers that code reads."""
    return spec_text(getattr(spec, "code_spec", spec))


@functools.cache
def source_digest() -> str:
    """sha256 of the Python sources that decide a kernel's bytes, read once a process."""
    package = Path(__file__).resolve().parents[1]
    return digest_of(path for name in SOURCE_PACKAGES for path in (package / name).rglob("*.py"))


def digest_of(paths: Iterable[Path]) -> str:
    """sha256 over path names and contents, in the order of the names."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.parent.name}/{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
