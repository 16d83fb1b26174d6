"""What kernels of the k best compute, by sorting, and data for them: integers have many ties."""

import numpy as np

from asmdnn.generators.functions.topk import TopKSpec
from asmdnn.types import f32, s32
from tests.generators.case import Case, Reference
from tests.support.arena import buffer_of, elements


def topk_case(spec: TopKSpec, random: np.random.Generator, integers: bool) -> Case:
    memory = {name: elements(random, integers, s32 if name == "dst" else f32) for name in spec.frame}
    rows = np.array([memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)])
    lists = rows if spec.along == "rows" else rows.T
    for i, x in enumerate(lists):
        numbers = np.arange(len(x))
        order = np.lexsort((-numbers if spec.order.last else numbers, -x if spec.order.largest else x))[: spec.k]
        for t, index in enumerate(order):
            along_rows = i * spec.dst_row_bytes + t * spec.dst_step_bytes
            place = along_rows if spec.along == "rows" else t * spec.dst_row_bytes + 4 * i
            memory["dst"].store(place, np.float64([index]))
            if spec.has_values:
                memory["values"].store(place, x[[index]])
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {})


REFERENCES = {TopKSpec: Reference(topk_case, rounds=False)}
