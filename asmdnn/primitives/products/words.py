"""Whether a product of bytes takes less time if a phase in front makes words of src.

Words are multiplied in two instructions, where bytes of both factors are widened first; and all columns share what the
phase takes.  Rows hardly matter, so that weights are in one format for many and for few.
"""

from math import prod

from asmdnn.isa.dot import Types, dot_level, types_of_words
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.blocks import fastest_block
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.matrices import WeightsPanels, panel_columns


def as_words(desc: MatMul, types: Types, engine: Engine) -> Types:
    """The types of words if they pay and weights may be in panels of them, else those of bytes, which are given."""
    words = types_of_words(types, engine.isa)
    if words is None or not desc.dst.nelems():
        return types
    if desc.weights.inner_blocks:
        return words if WeightsPanels(words, lanes_of(dot_level(words, engine.isa))).takes(desc.weights) else types
    if not desc.weights.is_any and prod(desc.dst.dims[:-1]) <= engine.tuning.products.few_vectors:
        return types  # weights are read once, where they lie
    saved = cycles(desc, types, engine) - cycles(desc, words, engine)
    return words if saved > widening_cycles(desc.src.nelems(), words, engine.tuning) else types


def cycles(desc: MatMul, types: Types, engine: Engine) -> float:
    """Expected of tiles, with weights in panels."""
    (*rows, n), (*batch, k, _), isa = desc.dst.dims, desc.weights.dims, dot_level(types, engine.isa)
    m = rows[-1] if prod(batch) > 1 else prod(rows)
    panels = panel_columns(n, lanes_of(isa)) // lanes_of(isa), False
    tuning = engine.tuning
    _, found = fastest_block((m, n, -(-k // types.group)), types, isa, panels, tuning.phases, tuning.products, most=m)
    return found * prod(rows) / m


def widening_cycles(elements: int, words: Types, tuning: Tuning) -> float:
    """Expected of the phase that makes words of so many bytes."""
    return tuning.products.words_cycles + (1 + words.src.size_bytes) * elements / tuning.moves.near_bytes_per_cycle
