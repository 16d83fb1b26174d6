"""Gradients that need sums over a row, as kinds of primitives."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.core.any_batch import by_rows, items_alone
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.row_gradients.description import LayerNormBackward, SoftmaxBackward
from asmdnn.primitives.row_gradients.gradients import plan_layer_norm, plan_softmax


def softmax_words(desc: SoftmaxBackward) -> Words:
    return Words("softmax", f"alg:softmax_{desc.alg} axis:{desc.axis}", dims_word(desc.dst), desc.prop_kind.value)


def layer_words(desc: LayerNormBackward) -> Words:
    has = {"G": desc.use_global_stats, "C": desc.scale, "H": desc.diff_shift, "M": desc.rms}
    flags = "".join(letter for letter, value in has.items() if value)
    auxiliary = f"flags:{flags} epsilon:{number_word(desc.epsilon)}"
    return Words("layer_normalization", auxiliary, dims_word(desc.src), desc.prop_kind.value)


KINDS = (
    Kind(SoftmaxBackward, (plan_softmax,), softmax_words, any_batch_refusal=by_rows),
    Kind(LayerNormBackward, (plan_layer_norm,), layer_words, any_batch_refusal=items_alone("diff_scale", "diff_shift")),
)
