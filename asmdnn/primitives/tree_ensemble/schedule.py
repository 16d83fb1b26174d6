"""The plan of a sum over trees: codes of rows, then walks, eight at a time.

rows    eight rows go down a tree together, which share its nodes; those that are left as below
trees   a row goes down eight trees together, which leaves registers for more columns
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from asmdnn.errors import counted
from asmdnn.generators.trees.codes import ARGUMENTS as CODES_ARGUMENTS
from asmdnn.generators.trees.codes import WORD_BYTES, TreeCodesSpec
from asmdnn.generators.trees.walk import ARGUMENTS, COLUMNS, WALKS, TreeWalkSpec, most_blocks
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.move_tuning import TreeTuning
from asmdnn.planning.phase import MOST_CYCLES, Int64, Phase, records_of, views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.primitives.tree_ensemble.description import TreeEnsemble, list_of
from asmdnn.records import dataclass

Cuts = list[tuple[str, int, int]]  # a kind of kernel, the first row, and how many records there are
CODES = "codes"


@dataclass(frozen=True, slots=True, eq=False)
class TreeRequest:
    """What both ways are asked: tensors as they are passed, and as kernels take them."""

    desc: TreeEnsemble
    passed: Mapping[str, MemoryDesc]
    tensors: Mapping[str, MemoryDesc]
    engine: Engine


def request_of(desc: TreeEnsemble, attr: Attr, engine: Engine) -> TreeRequest:
    """Of dense rows.  Raises Refused."""
    refuse_attr(attr)
    names = [name for name in ("src", *ARGUMENTS[1:]) if getattr(desc, name) is not None]
    passed = {name: getattr(desc, name) for name in names}
    passed |= {name: row_major(x.dims, x) for name, x in passed.items() if x.is_any}
    refuse_overlap(dst=passed["dst"])
    tensors = {name: row_major(x.dims, x) for name, x in passed.items()}
    if max(x.size_bytes for x in tensors.values()) > MAX_OFFSET:
        raise Refused("a tensor has 2 GiB or more")
    return TreeRequest(desc, passed, tensors, engine)


def inside_of(request: TreeRequest, way: str) -> Inside:
    """Raises Refused where another way reads nodes less often."""
    desc, engine = request.desc, request.engine
    assembly, tuning, cuts = Assembly(engine.tuning, engine.isa), engine.tuning.trees, WAYS[way](desc, engine)
    if desc.src.dims[0]:
        room = assembly.room(CODES, WORD_BYTES * desc.words * desc.src.dims[0])
        assembly.add([codes_phase(desc, room, tuning), walks_phase(desc, cuts, room, engine)])
    whole = assembly.plan(f"{way}:{f32_level(engine.isa)}", request.tensors, ("dst",))
    return Inside(whole, request.passed, engine.tuning, engine.isa)


def codes_phase(desc: TreeEnsemble, room: str, tuning: TreeTuning) -> Phase:
    """A record of some rows each."""
    rows, features = desc.src.dims
    starts = np.arange(0, rows, tuning.codes_rows)
    sizes, kernel = np.unique(np.minimum(tuning.codes_rows, rows - starts), return_inverse=True)
    specs = tuple(
        TreeCodesSpec(
            isa=NARROWEST,
            rows=int(size),
            features=features,
            words=desc.words,
            mirrored=desc.mirrored,
            src_row_bytes=WORD_BYTES * features,
        )
        for size in sizes
    )
    records = records_of(
        CODES_ARGUMENTS, {"src": WORD_BYTES * features * starts, "codes": WORD_BYTES * desc.words * starts}, kernel
    )
    cycles = tuning.call_cycles + sizes[kernel] * desc.words // tuning.codes_per_cycle
    return Phase(specs, views(("src", room)), records, cycles.astype(np.int32))


def walks_phase(desc: TreeEnsemble, cuts: Cuts, room: str, engine: Engine) -> Phase:
    """Of every column, or of as many as registers hold, walks of eight rows and of single ones."""
    names = (room, "nodes", "order", "values" if desc.values is not None else "", "base", "dst")
    specs, pieces, costs, tuning = list[TreeWalkSpec](), [], [], engine.tuning.trees
    for along, first, count in cuts:
        step = WALKS if along == "rows" else 1
        rows = first + step * np.arange(count)
        for column, columns, (of_order, of_values) in blocks(desc, along, engine):
            spec = spec_of(desc, along, columns, engine)
            if spec not in specs:
                specs.append(spec)
            places: dict[str, Int64 | int] = {
                room: WORD_BYTES * desc.words * rows,
                "order": of_order,
                "base": WORD_BYTES * column,
                "dst": WORD_BYTES * (desc.columns * rows + column),
            }
            if desc.values is not None:
                places["values"] = of_values
            pieces.append(records_of([name or "none" for name in names], places, specs.index(spec)))
            levels = max(1, (desc.units // desc.trees).bit_length() - 2)  # of trees that are full
            costs.append(np.full(count, tuning.call_cycles + step * desc.trees * levels * tuning.step_cycles))
    cycles = np.minimum(np.concatenate(costs), MOST_CYCLES).astype(np.int32)
    return Phase(tuple(specs), views(names), np.concatenate(pieces), cycles)


def by_rows(desc: TreeEnsemble, engine: Engine) -> Cuts:
    """A row in eight trees takes a third longer, and less where eight rows would walk more often.  Raises Refused."""
    whole, rest = divmod(desc.src.dims[0], WALKS)
    if not whole:
        raise Refused(f"src has {counted(rest, 'row')}, {WALKS} go down a tree together")
    rounds = {along: len([*blocks(desc, along, engine)]) for along in WAYS}
    if rounds["rows"] > rounds["trees"]:
        walks = {along: counted(rounds[along], "walk") for along in WAYS}
        raise Refused(f"{desc.columns} columns take {walks['rows']} of {WALKS} rows, {walks['trees']} of {WALKS} trees")
    of_rest = [("trees", WALKS * whole, rest)] if rest else []
    return [("rows", 0, whole), *of_rest]


def by_trees(desc: TreeEnsemble, engine: Engine) -> Cuts:
    """A record for every row."""
    return [("trees", 0, desc.src.dims[0])]


WAYS: Mapping[str, Callable[[TreeEnsemble, Engine], Cuts]] = {"rows": by_rows, "trees": by_trees}
plans = ways_as_passed_or_copied(request_of, {way: partial(inside_of, way=way) for way in WAYS}, f32_level)


def blocks(desc: TreeEnsemble, along: str, engine: Engine) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """(column, how many at once, the offsets of their list of trees and of their values)."""
    if desc.values is None:
        for column in range(desc.columns):
            yield column, 1, (WORD_BYTES * desc.order.dims[1] * column, 0)
        return
    most = COLUMNS * most_blocks(f32_level(engine.isa), along)
    for column in range(0, desc.columns, most):
        yield column, min(most, desc.columns - column), (0, WORD_BYTES * desc.values.dims[1] * column)


def spec_of(desc: TreeEnsemble, along: str, columns: int, engine: Engine) -> TreeWalkSpec:
    isa = f32_level(engine.isa) if columns > COLUMNS * most_blocks(NARROWEST, along) else NARROWEST
    return TreeWalkSpec(
        isa=isa, along=along, joins=desc.aggregate, columns=columns, in_nodes=desc.values is None,
        words=desc.words, units=desc.units, trees=list_of(desc.trees),
        leaves=1 if desc.values is None else desc.values.dims[1], dst_row_bytes=WORD_BYTES * desc.columns,
    )  # fmt: skip
