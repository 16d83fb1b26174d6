"""Kernel packs: plans and kernels made ahead, so that another process, or machine, needs neither planner nor PeachPy.

Kernels are keyed as in the disk cache.  A plan is keyed by its description, attributes, ISA level, implementation list
and machine, and the first one of a description also without the machine: on a machine that the pack was not made for
the planners would ask for kernels that it does not have.  For the same reason the size of L2 is in no key.
"""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.forking import importing
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.isa.peachpy_version import PEACHPY_VERSION
from asmdnn.jit import packs
from asmdnn.jit.digests import source_digest
from asmdnn.jit.packs import Pack
from asmdnn.memory.sequences import items
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.primitives.core.implementation import ANY_MACHINE, plan_digest, plan_key
from asmdnn.primitives.core.registry import kind_of, planners_of
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.version import __version__

NO_FACTS: Mapping[str, Any] = MappingProxyType({})


def load_pack(path: str | PathLike[str], sha256: str = "") -> Pack:
    """From now on, take kernels and plans from the pack at `path`, before the disk cache and the planners.

    The file is read once and checked: its checksum, its format, and that its kernels were made by these very sources.
    Raises InvalidArguments with the reason otherwise, and then nothing of the pack is used.  Packs stay loaded; loading
    one again changes nothing.  Primitives that exist already, and plans that were made before, stay as they are.  Any
    thread may call this at any time.  Only load packs that you trust: they are code.
    """
    with importing():  # here and below: most processes need neither packs nor JSON
        from asmdnn.jit import pack_file

    where = _path(path)
    file = pack_file.read(where, sha256)
    for name, mine in versions().items():
        theirs = file.facts.get(name)
        if theirs != mine:
            raise InvalidArguments(
                f"the pack {shown(str(where))} was made with {name} {_short(theirs)}, this is {_short(mine)}: "
                "make it again with this version."
            )
    return packs.add(Pack.of(str(where), file))


def read_pack(path: str | PathLike[str]) -> Pack:
    """What the intact pack at `path` holds, whatever version made it; it is not used.  Raises InvalidArguments."""
    with importing():
        from asmdnn.jit import pack_file

    where = _path(path)
    return Pack.of(str(where), pack_file.read(where))


def write_pack(path: str | PathLike[str], descs: Iterable[PrimitiveDesc], facts: Mapping[str, Any] = NO_FACTS) -> Pack:
    """Generate the kernels of `descs`, for any ISA level on any machine, and write them with the plans to `path`.

    `facts` are added to the manifest.  Raises InvalidArguments if the file cannot be written, what generating raises,
    and NotPackable for a plan with values that the format does not know.
    """
    with importing():
        from asmdnn.jit import pack_file
        from asmdnn.planning.codec import encode_plan

    where, given = _path(path), _descs(descs)
    if not isinstance(facts, Mapping):
        raise InvalidArguments(f"facts must map names to what JSON can say, not {shown(facts)}")
    blobs: dict[tuple[str, str], tuple[str, str, str, str, bytes]] = {}
    isas: dict[str, None] = {}
    machines: dict[str, None] = {}
    cache = kernel_cache()
    for pd in given:
        isas[pd.engine.isa] = machines[pd.engine.machine] = None
        specs: list[Any] = [*pd.plan.specs, ExecutorSpec(arguments=pd.plan.arguments)]
        for spec in specs:
            key = cache.key(spec)
            if ("kernel", key) not in blobs:
                code = cache.fetch(spec).code
                blobs["kernel", key] = ("kernel", key, spec.name, spec.isa, code)
        planners, isa = planners_of(kind_of(pd.desc), pd.attr), pd.engine.isa
        own, common = (plan_key(planners, pd.desc, pd.attr, isa, m) for m in (pd.engine.machine, ANY_MACHINE))
        refusals = [[refusal.implementation, refusal.reason] for refusal in pd.refusals]
        name = f"{pd.implementation}  {pd.desc}"
        plan = encode_plan(pd.plan, refusals)
        blobs["plan", own] = ("plan", own, name, isa, plan)
        blobs.setdefault(("common", common), ("common", common, name, isa, plan))
    if not blobs:
        raise InvalidArguments("a pack needs at least one problem")
    made_for = {"isas": list(isas), "machines": list(machines)}
    try:
        image = pack_file.image_of({**versions(), **made_for, **facts}, list(blobs.values()))
    except (TypeError, ValueError, RecursionError, OverflowError):
        raise InvalidArguments(f"facts must map names to what JSON can say, not {shown(facts)}") from None
    pack_file.write(where, image)
    return read_pack(where)


def versions() -> dict[str, str]:
    """What must be the same where a pack is made and where it is used."""
    return {
        "asmdnn": __version__,
        "PeachPy": PEACHPY_VERSION,
        "generators": source_digest(),
        "planners": plan_digest(),
    }


def _path(path: str | PathLike[str]) -> Path:
    try:
        return Path(path).absolute()
    except Exception:  # the caller's object may raise anything
        raise InvalidArguments(f"path must be the path of a pack, not {shown(path)}") from None


def _descs(descs: Iterable[PrimitiveDesc]) -> list[PrimitiveDesc]:
    try:
        given = list(items(descs))
    except Exception:  # the caller's object may raise anything when it is iterated over
        raise InvalidArguments(f"descs must be a list of PrimitiveDesc, not {shown(descs)}") from None
    for pd in given:
        if not isinstance(pd, PrimitiveDesc):
            raise InvalidArguments(f"descs must be a list of PrimitiveDesc, one is {shown(pd)}")
    return given


def _short(version: Any) -> str:
    text = str(version)
    return text[:12] if len(text) == 64 else text[:40]
