"""Gradients that need sums over images and pixels, as kinds of primitives."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.channel_gradients.description import BatchNormBackward, PReLUBackward
from asmdnn.primitives.channel_gradients.gradients import plan_batch_norm, plan_prelu
from asmdnn.primitives.core.kind import Kind, Words, dims_word


def batch_norm_words(desc: BatchNormBackward) -> Words:
    flags = ("G" * desc.use_global_stats, "C" * (desc.scale is not None), "H" * (desc.diff_shift is not None))
    auxiliary = f"flags:{''.join(flags)} epsilon:{number_word(desc.epsilon)}"
    kind = "backward" if desc.diff_scale or desc.diff_shift else "backward_data"
    return Words("batch_normalization", auxiliary, dims_word(desc.src), kind)


def prelu_words(desc: PReLUBackward) -> Words:
    return Words("prelu", "", f"{dims_word(desc.src)}:{dims_word(desc.weights)}", "backward")


KINDS = (
    Kind(BatchNormBackward, (plan_batch_norm,), batch_norm_words),
    Kind(PReLUBackward, (plan_prelu,), prelu_words),
)
