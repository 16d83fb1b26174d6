"""Products of bf16 where a CPU class multiplies pairs slowly: as f32, if that is expected to take fewer cycles.

Weights are widened as they are loaded and src in a phase before, as on levels without VDPBF16PS.  The tuning says how
many cycles of FMA its multiply of a pair takes (`products.bf16_cycles`).
"""

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

from asmdnn.isa.dot import BF16, F32, Types, dot_level, levels_of
from asmdnn.isa.levels import LEVELS, isa_of
from asmdnn.isa.tiles import tile_level
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.implementation import Answer, try_all
from asmdnn.primitives.core.uses import inside
from asmdnn.primitives.core.ways import AsksBelow, Planners
from asmdnn.types import DataType, IsaName, f32

MULTIPLIED = {types.weights: types for types in (F32, BF16)}  # by weights of these types, with a src of the same


def multiplies_pairs_slowly(engine: Engine) -> bool:
    """Whether VDPBF16PS takes longer than the two multiplies of f32 in its place."""
    return engine.tuning.products.bf16_cycles > BF16.group and bool(levels_of(BF16, engine.isa))


def fast_pairs(dtypes: Iterable[DataType], engine: Engine) -> Types | None:
    """The types that a product multiplies in pairs; None unless all are bf16 and the level multiplies pairs fast."""
    takes = {*dtypes} == {BF16.src} and bool(levels_of(BF16, engine.isa)) and not multiplies_pairs_slowly(engine)
    return BF16 if takes else None


def pairs_of_tiles(dtypes: Iterable[DataType], engine: Engine) -> Types | None:
    """The types that tiles of AMX multiply where vectors do it slowly; None unless all are bf16, or without tiles."""
    takes = {*dtypes} == {BF16.src} and multiplies_pairs_slowly(engine) and level_of_tiles(BF16, engine)
    return BF16 if takes else None


def tiled_pairs(dtypes: Iterable[DataType], engine: Engine) -> Types | None:
    """The types that tiles of AMX multiply; None unless all are bf16, or without tiles."""
    return BF16 if {*dtypes} == {BF16.src} and level_of_tiles(BF16, engine) else None


def level_that_rounds(dtypes: Iterable[DataType], engine: Engine) -> Engine:
    """The engine with the level of f32's kernels, or, for tensors of which some are bf16, the one that rounds to it."""
    rounds = BF16.src in {*dtypes} and bool(levels_of(BF16, engine.isa))
    return at_level(engine, dot_level(BF16 if rounds else F32, engine.isa))


def level_of_tiles(types: Types, engine: Engine) -> IsaName | None:
    """The level whose tiles multiply these types, if there is one.  Not floats where a sum has one order for any number
    of rows: vectors, to which few rows are left, add in another one."""
    return None if engine.any_batch and types.sums == f32 else tile_level(types, engine.isa)


def tiles_of_pairs(engine: Engine) -> IsaName | None:
    """The level whose tiles multiply pairs of bf16."""
    return level_of_tiles(BF16, engine)


def types_for_tiles(dtypes: Mapping[str, DataType]) -> Types:
    """What these tiles multiply.  Raises Refused for tensors of other types."""
    for name, dtype in dtypes.items():
        if dtype != BF16.src:
            raise Refused(f"tiles multiply {BF16.src}, {name} is {dtype}")
    return BF16


def below_pairs(engine: Engine) -> Engine:
    """The same engine with the best level that widens bf16."""
    features = isa_of(engine.isa).features
    levels = [level for level in LEVELS if level.features <= features and not levels_of(BF16, level.name)]
    return at_level(engine, max(levels, key=lambda level: level.rank).name)


def widened(channels: int = -1, packs_blocks: bool = False) -> AsksBelow:
    """The planners below at a level which widens bf16, where that is faster.

    channels: the dim of dst that weights' columns are; one or two rows in the others wait for weights, not multiplies.
    packs_blocks: whether they pack plain weights a block at a time, as no kernel does that widens them: from beyond L2
    they would be read where they lie, 16 rows times 1024x4096 in 7.4 ms instead of 2.2 on an Emerald Rapids.
    """

    @AsksBelow
    def answers(below: Planners, desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        if not desc.src.dtype == desc.weights.dtype == BF16.src or not multiplies_pairs_slowly(engine):
            return
        if engine.any_batch:  # the number of rows would choose
            return
        numbers, (*others,) = engine.tuning.products, desc.dst.dims
        others.pop(channels)
        if prod(others) <= numbers.half_weights_rows:
            return
        is_plain = not (desc.weights.is_any or desc.weights.inner_blocks)
        if packs_blocks and is_plain and desc.weights.size_bytes > engine.l2_bytes:
            return
        plan, native = (first(below, desc, attr, each) for each in (below_pairs(engine), engine))
        if plan is None:
            return
        most = None if native is None else cycles_of_fma(native, engine)
        if most is not None and plan.cycles >= most:
            yield Refusal(plan.implementation, f"{plan.cycles} cycles are expected, {most} of pairs of bf16")
        else:
            yield plan

    return answers


def cycles_of_fma(plan: Plan, engine: Engine) -> int:
    """The expected cycles of a plan that multiplies bf16, which count its pairs as multiplies of f32; those of tiles
    are expected as such."""
    tiles = tile_level(BF16, engine.isa)
    by_tiles = any(spec.isa == tiles for spec in plan.specs)
    return plan.cycles if by_tiles else int(plan.cycles * engine.tuning.products.bf16_cycles)


def cycles_beside_tiles(plan: Plan, products: tuple[type, ...], engine: Engine) -> float:
    """The expected cycles of a plan whose kernels of these classes multiply pairs: by tiles of AMX, or by vectors, for
    which plans count pairs as multiplies of f32."""
    tiles, found = tile_level(BF16, engine.isa), 0.0
    for spec, _, cycles in (use for phase in plan.phases for use in phase.uses()):
        kernel = inside(spec)
        by_vectors = isinstance(kernel, products) and spec.isa != tiles and getattr(kernel, "depth", 1) > 0
        found += cycles * (engine.tuning.products.bf16_cycles if by_vectors else 1)
    return found


def first(planners: Planners, desc: Any, attr: Attr, engine: Engine) -> Plan | None:
    return next((answer for answer in try_all(planners, desc, attr, engine) if isinstance(answer, Plan)), None)
