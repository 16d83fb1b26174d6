"""Whether a convolution of bytes takes less time if a phase in front makes words of src, which the level multiplies
in fewer instructions: products/words.py has the same of matrices."""

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.isa.dot import Types, dot_class, dot_level, types_of_words
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.convolution.description import ConvolutionDesc, channels_of_group
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.words import widening_cycles

VECTORS = 2  # of a tile, if there are as many channels


def words_that_pay(desc: ConvolutionDesc, engine: Engine) -> Types | None:
    """The types of words that are expected to save more than the phase takes, or that weights are packed for; None:
    bytes are multiplied."""
    types = types_of(desc)
    words = types_of_words(types, engine.isa)
    if words is None or not desc.dst.nelems() or channels_of_group(desc, "src") == 1:  # half of every pair would be 0
        return None
    if desc.weights.inner_blocks[-1:] == ((1 + desc.has_groups, words.group),):
        return words
    saved = multiply_cycles(desc, types, engine.isa) - multiply_cycles(desc, words, engine.isa)
    return words if saved > widening_cycles(desc.src.nelems(), words, engine.tuning) else None


def multiply_cycles(desc: ConvolutionDesc, types: Types, isa: str) -> float:
    """Of tiles, if ports alone count."""
    lanes, out = lanes_of(dot_level(types, isa)), channels_of_group(desc, "dst")
    of_group, pixels = -(-out // lanes), desc.dst.nelems() // desc.dst.dims[1]
    vectors = min(VECTORS, of_group)
    rows = min(pixels, blocks_of(types, dot_level(types, isa))[vectors])
    depth = desc.weights.nelems() // desc.dst.dims[1] / types.group
    step = dot_class(types, isa).busy_cycles(rows, vectors)
    return desc.groups * of_group / vectors * -(-pixels // rows) * depth * step
