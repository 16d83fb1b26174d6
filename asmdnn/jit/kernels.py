"""The kernel cache: from a spec to a callable address, through memory, packs, disk, then the generator."""

import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final, Generic, Protocol, TypeVar

from asmdnn import verbose
from asmdnn.collecting import without_collections
from asmdnn.jit import packs, profiling
from asmdnn.jit.digests import code_text, source_digest
from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi
from asmdnn.jit.store import DiskStore
from asmdnn.records import dataclass, field


class CachedSpec(Protocol):
    """What a kernel's bytes depend on: a frozen dataclass whose repr is the same text in every process."""

    @property
    def name(self) -> str: ...


SpecT = TypeVar("SpecT", bound=CachedSpec)
MOST_TEXTS: Final = 1024  # of specs that are known


@dataclass(frozen=True)  # without slots, so that it can be referred to weakly
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
    """Where the kernels that were asked for came from, in one call or since the cache exists."""

    memory_hits: int = 0
    disk_hits: int = 0
    generated: int = 0
    pack_hits: int = 0

    @property
    def is_known(self) -> bool:
        """Whether all were in memory already."""
        return not (self.disk_hits or self.generated or self.pack_hits)

    def __add__(self, other: "CacheCounts") -> "CacheCounts":
        return CacheCounts(
            self.memory_hits + other.memory_hits,
            self.disk_hits + other.disk_hits,
            self.generated + other.generated,
            self.pack_hits + other.pack_hits,
        )


@dataclass(frozen=True, slots=True)
class Fetched:
    """A kernel's code, and where it was found: "pack", "disk", or "generated"."""

    name: str
    code: bytes
    origin: str


class KernelCache(Generic[SpecT]):
    """Kernels by spec; `generate` turns a spec into position-independent bytes, `store` (or None) keeps them on disk.

    Loaded packs are asked before the disk.  `version` names whatever else the bytes depend on, i.e. PeachPy's version.
    `notice` is called once for every kernel that is new to the process, wherever it came from.
    The cache holds no kernel: whoever loaded one does, and the mapping of a kernel is unmapped when nobody uses any of
    the kernels in it.
    Every method may be called from any thread: threads that ask for the same new spec at once may each generate it, and
    all get the same kernel.  In a fork()ed child the cache and all its kernels stay valid.
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
        self._loaded: weakref.WeakValueDictionary[str, LoadedKernel] = weakref.WeakValueDictionary()
        self._texts: dict[int, tuple[SpecT, str]] = {}  # by id, with what keeps it
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
        return self.load_counted(specs)[0]

    def load_counted(self, specs: Sequence[SpecT]) -> tuple[tuple[LoadedKernel, ...], CacheCounts]:
        """As `load`, and where these kernels came from."""
        # By text, as on disk, and not by equality, which calls True and 1, or 0.0 and -0.0, the same.
        texts = [self._text(spec) for spec in specs]
        with self._lock:
            found = {text: kernel for text in texts if (kernel := self._loaded.get(text)) is not None}
        new = {text: spec for text, spec in zip(texts, specs, strict=True) if text not in found}
        with without_collections():
            fetched = [self._fetch(spec) for spec in new.values()]
        fresh = dict(zip(new, mapped(fetched), strict=True)) if new else {}
        origins = [kernel.origin for kernel in fetched]
        counts = CacheCounts(len(texts) - len(new), *map(origins.count, ("disk", "generated", "pack")))
        if self._notice:
            for text, spec in new.items():
                self._notice(spec, fresh[text])
        with self._lock:
            found |= {text: self._loaded.setdefault(text, kernel) for text, kernel in fresh.items()}
            self._counts += counts
        return tuple(found[text] for text in texts), counts

    def _text(self, spec: SpecT) -> str:
        """`code_text`, which is long: shapes of a network have most specs in common, the very objects."""
        known = self._texts.get(id(spec))
        if known is None or known[0] is not spec:
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
            known = self._texts[id(spec)] = spec, code_text(spec)
        return known[1]

    def loaded(self) -> list[LoadedKernel]:
        """The kernels in use."""
        return list(self._loaded.values())

    def fetch(self, spec: SpecT) -> Fetched:
        """The code of a spec from a pack, the disk or the generator, whatever its ISA level; nothing is mapped."""
        key, name = self.key(spec), spec.name  # which is a checksum, too
        if code := packs.find_kernel(key, name):
            return Fetched(name, code, "pack")
        if self._store and (code := self._store.get(key, name)):
            return Fetched(name, code, "disk")
        code = self._generate(spec)
        if self._store:
            self._store.put(key, name, code)
        return Fetched(name, code, "generated")

    def _fetch(self, spec: SpecT) -> Fetched:
        """As `fetch`, and says so."""
        start = perf_counter()
        kernel = self.fetch(spec)
        if verbose.wants("jit"):
            size, ms = f"bytes:{len(kernel.code)}", f"{(perf_counter() - start) * 1e3:.6g}"
            verbose.say("jit", f"jit:{kernel.origin}", "cpu", "kernel", kernel.name, "undef", "", "", size, "", ms)
        return kernel

    def key(self, spec: SpecT) -> str:
        """What the kernel is stored under: sha256 of the spec's text, the generating sources and `version`."""
        text = "\n".join((self._text(spec), source_digest(), self._version))
        return hashlib.sha256(text.encode()).hexdigest()


def mapped(kernels: Sequence[Fetched]) -> list[LoadedKernel]:
    """The kernels in executable memory, in one mapping, equal ones once; profilers are told.

    Raises AsmdnnError if that is refused.
    """
    names, own = profiling.wanted(), list(dict.fromkeys(kernels))
    memory = ExecutableMemory([kernel.code + profiling.tail(names, kernel.code) for kernel in own])
    places = list(zip(own, memory.addresses, strict=True))
    if names:
        profiling.announce(names, [(kernel.name, address, len(kernel.code)) for kernel, address in places], memory)
    loaded = {kernel: LoadedKernel(kernel.name, address, len(kernel.code), memory) for kernel, address in places}
    return [loaded[kernel] for kernel in kernels]


def _renew_lock(cache: KernelCache[SpecT] | None) -> None:
    """In a fork()ed child, the thread that held the lock may not exist any more; the dictionary it guards is intact."""
    if cache is not None:
        cache._lock = threading.Lock()
