"""Products whose sums may have the type of their factors: f16, where a level adds those at twice the rate of f32.

That is for attributes to say: accumulation_mode "f16" asks for such sums, and "any" allows them.  "relaxed" allows
rounded sums in memory alone, of which there are none here.  Tiles add f16 in runs of k, and runs in f32
(asmdnn/isa/dot_runs.py).
"""

from math import prod

from asmdnn.isa.dot import Types, dot_level, run_products
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.matrices import WeightsPanels

ANY = "any"


def types_of_runs(desc: MatMul, attr: Attr, engine: Engine) -> Types | None:
    """What is multiplied with such sums; None where that is not allowed or not there, or not worth it.

    Where a sum has one order for any number of rows there are none: a run ends where a tile's range of k does, and
    that depends on the rows.
    """
    types = run_products(desc.src.dtype, desc.weights.dtype, engine.isa)
    if types is None or engine.any_batch or attr.accumulation_mode not in (ANY, str(types.run)):
        return None
    if attr.accumulation_mode == ANY and not finds_or_copies_weights(desc, types, engine):
        return None
    return types


def finds_or_copies_weights(desc: MatMul, types: Types, engine: Engine) -> bool:
    """Whether tiles need no copy of weights, or have so many rows that it pays: widened weights need none."""
    weights = desc.weights
    if weights.is_any or WeightsPanels(types, lanes_of(dot_level(types, engine.isa))).takes(weights):
        return True
    rows = prod(desc.dst.dims[:-1]) / max(1, prod(weights.dims[:-2]))  # that each of them is multiplied with
    return not weights.inner_blocks and rows > engine.tuning.products.few_vectors
