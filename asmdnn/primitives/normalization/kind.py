"""Normalizations, as kinds of primitives."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.kind import Kind, Words, dims_word
from asmdnn.primitives.normalization import layer_norm
from asmdnn.primitives.normalization.layer_description import LayerNormForward


def layer_words(desc: LayerNormForward) -> Words:
    flags = (
        "G" * desc.use_global_stats,
        "C" * (desc.scale is not None),
        "H" * (desc.shift is not None),
        "M" * desc.rms,
    )
    auxiliary = f"flags:{''.join(flags)} epsilon:{number_word(desc.epsilon)}"
    return Words("layer_normalization", auxiliary, dims_word(desc.src), desc.prop_kind.value)


KINDS = (Kind(LayerNormForward, (layer_norm.plan,), layer_words),)
