"""The plan of a sum over trees: codes of rows, then walks, of eight rows at a time and of those that are left."""

from collections.abc import Iterator

import numpy as np

from asmdnn.generators.trees.codes import ARGUMENTS as CODES_ARGUMENTS
from asmdnn.generators.trees.codes import WORD_BYTES, TreeCodesSpec
from asmdnn.generators.trees.walk import ARGUMENTS, COLUMNS, WALKS, TreeWalkSpec, most_blocks
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, f32_level
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.move_tuning import TreeTuning
from asmdnn.planning.phase import MOST_CYCLES, Int64, Phase, records_of, views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.tree_ensemble.description import TreeEnsemble, list_of

NAME, CODES = "trees", "codes"


def inside_of(desc: TreeEnsemble, attr: Attr, engine: Engine) -> Inside:
    """The plan of dense rows.  Raises Refused."""
    refuse_attr(attr)
    names = [name for name in ("src", *ARGUMENTS[1:]) if getattr(desc, name) is not None]
    passed = {name: getattr(desc, name) for name in names}
    passed |= {name: row_major(x.dims, x) for name, x in passed.items() if x.is_any}
    if passed["dst"].may_overlap:
        raise Refused("elements of dst overlap")
    tensors = {name: row_major(x.dims, x) for name, x in passed.items()}
    if max(x.size_bytes for x in tensors.values()) > MAX_OFFSET:
        raise Refused("a tensor has 2 GiB or more")
    assembly, tuning = Assembly(engine.tuning, engine.isa), engine.tuning.trees
    if desc.src.dims[0]:
        room = assembly.room(CODES, WORD_BYTES * desc.words * desc.src.dims[0])
        assembly.add([codes_phase(desc, room, tuning), walks_phase(desc, room, engine)])
    whole = assembly.plan(f"{NAME}:{f32_level(engine.isa)}", tensors, ("dst",))
    return Inside(whole, passed, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)


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


def walks_phase(desc: TreeEnsemble, room: str, engine: Engine) -> Phase:
    """Of every column, or of as many as registers hold, walks of eight rows and of single ones."""
    names = (room, "nodes", "order", "values" if desc.values is not None else "", "base", "dst")
    specs, pieces, costs, tuning = list[TreeWalkSpec](), [], [], engine.tuning.trees
    for along, first, count in cuts(desc, engine):
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


def cuts(desc: TreeEnsemble, engine: Engine) -> Iterator[tuple[str, int, int]]:
    """(kind of kernel, first row, records).

    Eight rows in a tree share its nodes, and one row in eight trees has registers for more columns: it takes a third
    longer, and less where the others would walk more often.
    """
    rows = desc.src.dims[0]
    rounds = {along: len([*blocks(desc, along, engine)]) for along in ("rows", "trees")}
    whole = rows // WALKS if rounds["rows"] <= rounds["trees"] else 0
    if whole:
        yield "rows", 0, whole
    if rest := rows - WALKS * whole:
        yield "trees", WALKS * whole, rest


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
