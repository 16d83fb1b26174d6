"""Gradients that need sums over images and pixels, as kinds of primitives."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.channel_gradients.batch_norm import plan_batch_norm
from asmdnn.primitives.channel_gradients.description import (
    BatchNormBackward,
    ChannelNormBackward,
    GroupNormBackward,
    PReLUBackward,
)
from asmdnn.primitives.channel_gradients.group_norm import plan_group_norm
from asmdnn.primitives.channel_gradients.prelu import plan_prelu
from asmdnn.primitives.core.any_batch import items_alone
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.normalization.channel_description import NONE


def norm_words(desc: ChannelNormBackward) -> Words:
    flags = ("G" * desc.use_global_stats, "C" * (desc.scale is not None), "H" * (desc.diff_shift is not None))
    kind = desc.prop_kind.value
    auxiliary = f"flags:{''.join(flags)} epsilon:{number_word(desc.epsilon)}"
    if isinstance(desc, GroupNormBackward):
        return Words("group_normalization", f"{auxiliary} groups:{desc.groups}", dims_word(desc.src), kind)
    auxiliary += f" fuse:{desc.fuse}" * (desc.fuse != NONE)
    return Words("batch_normalization", auxiliary, dims_word(desc.src), kind)


def prelu_words(desc: PReLUBackward) -> Words:
    return Words("prelu", "", f"{dims_word(desc.src)}:{dims_word(desc.weights)}", desc.prop_kind.value)


KINDS = (
    Kind(BatchNormBackward, (plan_batch_norm,), norm_words),
    Kind(GroupNormBackward, (plan_group_norm,), norm_words, any_batch_refusal=items_alone("diff_scale", "diff_shift")),
    Kind(PReLUBackward, (plan_prelu,), prelu_words),
)
