"""The plan of a non-maximum suppression: a record for each class of an image."""

import numpy as np

from asmdnn.generators.functions.suppression import SuppressionSpec
from asmdnn.generators.functions.suppression_shape import ARGUMENTS, AXES, CALLS, layout_of
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import MOST_CYCLES, Phase, records_of, views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.primitives.suppression.description import NonMaxSuppression
from asmdnn.types import F32_BYTES

NAME, STATE = "suppression", "state"
CALL_CYCLES, VECTOR_CYCLES = 50, 4  # of a call, and of a vector of scores
BOX_CYCLES, COMPARED_CYCLES = 150, 15  # of the next best box, and of a vector of boxes that it is compared with
FOUND = 30  # boxes of a class that are looked at, about: data say how many


def inside_of(desc: NonMaxSuppression, attr: Attr, engine: Engine) -> Inside:
    """The plan of dense tensors.  Raises Refused."""
    refuse_attr(attr)
    passed = {"corners": desc.corners, "scores": desc.scores, "dst": desc.dst}
    passed |= {name: row_major(x.dims, x) for name, x in passed.items() if x.is_any}
    refuse_overlap(dst=passed["dst"])
    tensors = {name: row_major(x.dims, x) for name, x in passed.items()}
    if max(x.size_bytes for x in tensors.values()) > MAX_OFFSET:
        raise Refused("a tensor has 2 GiB or more")
    assembly, isa = Assembly(engine.tuning, engine.isa), f32_level(engine.isa)
    if desc.dst.nelems():
        numbers = np.array((desc.overlap, desc.least), np.float32).view(np.int64)
        assembly.constants["numbers"] = numbers
        assembly.scratch[STATE] = layout_of(isa, desc.boxes, desc.most).size_bytes
        assembly.per_part = (STATE,)
        assembly.add([phase_of(desc, isa)])
    return Inside(assembly.plan(f"{NAME}:{isa}", tensors, ("dst",)), passed, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)


def phase_of(desc: NonMaxSuppression, isa: str) -> Phase:
    """Of dense tensors; a group of all calls for each class."""
    images, classes, boxes = desc.scores.dims
    call = np.arange(len(CALLS) * images * classes)
    kind = call // len(CALLS)
    columns = {
        "corners": kind // classes * (2 * AXES * F32_BYTES * boxes),
        "scores": kind * (F32_BYTES * boxes),
        "dst": kind * (F32_BYTES * desc.most),
    }
    specs = tuple(SuppressionSpec(isa=isa, call=name, boxes=boxes, most=desc.most) for name in CALLS)
    looked_at, lanes = min(boxes, FOUND), lanes_of(isa)
    compared = -(-min(desc.most, looked_at) // lanes) * COMPARED_CYCLES
    results = -(-desc.most // lanes)
    costs = -(-boxes // lanes) * VECTOR_CYCLES, looked_at * (BOX_CYCLES + compared), results
    cycles = CALL_CYCLES + np.minimum(costs, MOST_CYCLES - CALL_CYCLES)
    records = records_of(ARGUMENTS, columns, call % len(CALLS))
    groups = np.arange(0, len(call) + 1, len(CALLS))
    return Phase(specs, views(ARGUMENTS), records, cycles.astype(np.int32)[call % len(CALLS)], groups=groups)
