"""The kernel cache: from a spec to a callable address, through memory, then disk, then the generator."""

import functools
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi
from asmdnn.jit.store import DiskStore

SOURCE_PACKAGES = ("generators", "isa")  # every byte of a kernel comes from the spec, from these, and from PeachPy


class Spec(Protocol):
    """What a kernel's bytes depend on: a frozen dataclass whose repr is the same text in every process."""

    @property
    def name(self) -> str: ...


SpecT = TypeVar("SpecT", bound=Spec)


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel ready to be called: `void (*)(const int64_t *frame)` at `address`, `size` bytes of code and constants.

    The address is valid as long as this object, or another reference to `keep_alive`, exists.
    """

    name: str
    address: int
    size: int
    keep_alive: ExecutableMemory = field(repr=False, compare=False)

    @property
    def code(self) -> bytes:
        """What lies there, constants included."""
        return bytes(ffi.buffer(ffi.cast("char *", self.address), self.size))


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Where the kernels that were asked for came from, since the cache exists."""

    memory_hits: int = 0
    disk_hits: int = 0
    generated: int = 0


class KernelCache(Generic[SpecT]):
    """Kernels by spec; `generate` turns a spec into position-independent bytes, `store` (or None) keeps them on disk.

    `version` names whatever else the bytes depend on, i.e. PeachPy's version.  `notice` is called once for every kernel
    that is new to the process, wherever it came from.  Every method may be called from any
    thread: threads that ask for the same new spec at once may each generate it, and all get the same kernel.  In a
    fork()ed child the cache and all its kernels stay valid.
    """

    def __init__(
        self,
        generate: Callable[[SpecT], bytes],
        store: DiskStore | None,
        *,
        version: str = "",
        notice: Callable[[SpecT, LoadedKernel], None] | None = None,
    ) -> None:
        self._generate = generate
        self._store = store
        self._version = version
        self._notice = notice
        self._loaded: dict[str, LoadedKernel] = {}
        self._counts = CacheCounts()
        self._lock = threading.Lock()
        this = weakref.ref(self)  # the registration below is for ever, the cache need not be
        os.register_at_fork(after_in_child=lambda: _renew_lock(this()))

    @property
    def counts(self) -> CacheCounts:
        """A snapshot of the counters."""
        return self._counts

    def load(self, specs: Sequence[SpecT]) -> tuple[LoadedKernel, ...]:
        """The kernels of `specs`, in order; what is new in one call shares one executable mapping.

        Raises what `generate` raises, and AsmdnnError if the system refuses executable memory.
        """
        # By text, as on disk, and not by equality, which calls True and 1, or 0.0 and -0.0, the same.
        texts = [spec_text(spec) for spec in specs]
        with self._lock:
            found = {text: self._loaded[text] for text in texts if text in self._loaded}
        new = {text: spec for text, spec in zip(texts, specs, strict=True) if text not in found}
        fresh, generated = self._fetch(new) if new else ({}, 0)
        if self._notice:
            for text, spec in new.items():
                self._notice(spec, fresh[text])
        with self._lock:
            found |= {text: self._loaded.setdefault(text, kernel) for text, kernel in fresh.items()}
            self._counts = CacheCounts(
                self._counts.memory_hits + len(texts) - len(new),
                self._counts.disk_hits + len(new) - generated,
                self._counts.generated + generated,
            )
        return tuple(found[text] for text in texts)

    def key(self, spec: SpecT) -> str:
        """What the kernel is stored under: sha256 of the spec's text, the generating sources and `version`."""
        return self._key(spec_text(spec))

    def _key(self, text: str) -> str:
        return hashlib.sha256("\n".join((text, source_digest(), self._version)).encode()).hexdigest()

    def _fetch(self, new: dict[str, SpecT]) -> tuple[dict[str, LoadedKernel], int]:
        """Kernels from disk or the generator, and how many were generated."""
        codes, generated = [], 0
        for text, spec in new.items():
            key = self._key(text)
            code = self._store.get(key, spec.name) if self._store else None
            if not code:
                code = self._generate(spec)
                generated += 1
                if self._store:
                    self._store.put(key, spec.name, code)
            codes.append(code)
        memory = ExecutableMemory(codes)
        kernels = (
            LoadedKernel(spec.name, address, len(code), memory)
            for spec, address, code in zip(new.values(), memory.addresses, codes, strict=True)
        )
        return dict(zip(new, kernels, strict=True)), generated


def spec_text(spec: Spec) -> str:
    """The text that identifies a spec: its class with module, and its fields."""
    return f"{type(spec).__module__}.{spec!r}"


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


def _renew_lock(cache: KernelCache[SpecT] | None) -> None:
    """In a fork()ed child, the thread that held the lock may not exist any more; the dictionary it guards is intact."""
    if cache is not None:
        cache._lock = threading.Lock()
