"""The packs that this process has loaded: where the kernel cache and the planners look before they work."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from asmdnn.records import dataclass, field

if TYPE_CHECKING:  # most processes load no pack, and need no JSON
    from asmdnn.jit.pack_file import PackEntry, PackFile


@dataclass(frozen=True, slots=True)
class Pack:
    """A verified pack; a value that can be printed.  `facts` are what its manifest says of the whole."""

    path: str
    kernels: int
    plans: int
    isas: tuple[str, ...]
    facts: Mapping[str, Any] = field(repr=False, compare=False)
    sha256: str = field(repr=False)
    _file: "PackFile" = field(repr=False, compare=False)
    _index: Mapping[tuple[str, str], "PackEntry"] = field(repr=False, compare=False)

    @classmethod
    def of(cls, path: str, file: "PackFile") -> "Pack":
        counts = [sum(entry.kind == kind for entry in file.entries) for kind in ("kernel", "plan")]
        isas = tuple(str(name) for name in file.facts.get("isas", ()))
        index = {(entry.kind, entry.key): entry for entry in file.entries}
        return cls(path, counts[0], counts[1], isas, facts=file.facts, sha256=file.sha256, _file=file, _index=index)

    @property
    def size_bytes(self) -> int:
        """Of what the file holds, in memory as long as the pack is loaded."""
        return self._file.blobs.nbytes

    def entries(self) -> "tuple[PackEntry, ...]":
        """What is in it, kernels and plans, in the order of the file."""
        return self._file.entries

    def find(self, kind: str, key: str) -> "tuple[PackEntry, memoryview] | None":
        entry = self._index.get((kind, key))
        return (entry, self._file.blob(entry)) if entry else None


PLANS = ("plan", "common")  # for the machine that it was packed for, and for any
# The newest first.  Inserting into a list is atomic, and a fork()ed child keeps it.
_loaded: list[Pack] = []


def add(pack: Pack) -> Pack:
    """From now on, ask this pack first; one with the same content that is loaded already is returned instead."""
    for known in tuple(_loaded):
        if known.sha256 == pack.sha256:
            return known
    _loaded.insert(0, pack)
    return pack


def loaded() -> tuple[Pack, ...]:
    """The loaded packs, the newest first."""
    return tuple(_loaded)


def find_kernel(key: str, name: str) -> bytes | None:
    """The code under a key of the kernel cache, or None."""
    hits = (pack.find("kernel", key) for pack in tuple(_loaded))
    return next((bytes(hit[1]) for hit in hits if hit and hit[0].name == name), None)


def find_plan(keys: Iterable[str]) -> tuple[str, memoryview] | None:
    """The path of a pack, and the plan that it has under the first of the planners' keys that there is; or None."""
    loaded = tuple(_loaded)
    hits = ((pack.path, pack.find(kind, key)) for key in keys for kind in PLANS for pack in loaded)
    return next(((path, hit[1]) for path, hit in hits if hit), None)
