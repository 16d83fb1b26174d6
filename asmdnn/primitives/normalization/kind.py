"""Normalizations, as kinds of primitives."""

from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.core.any_batch import by_rows, refused
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.normalization import channel_norm, layer_norm, lrn, lrn_backward
from asmdnn.primitives.normalization.channel_description import NONE, BatchNormForward, ChannelNorm, GroupNormForward
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import LRNForward


def layer_words(desc: LayerNormForward) -> Words:
    flags = (
        "G" * desc.use_global_stats,
        "C" * (desc.scale is not None),
        "H" * (desc.shift is not None),
        "M" * desc.rms,
    )
    auxiliary = f"flags:{''.join(flags)} epsilon:{number_word(desc.epsilon)}"
    return Words("layer_normalization", auxiliary, dims_word(desc.src), desc.prop_kind.value)


def channel_words(desc: ChannelNorm) -> Words:
    flags = ("G" * desc.use_global_stats, "C" * (desc.scale is not None), "H" * (desc.shift is not None))
    auxiliary = f"flags:{''.join(flags)} epsilon:{number_word(desc.epsilon)}"
    if isinstance(desc, GroupNormForward):
        return Words(
            "group_normalization", f"{auxiliary} groups:{desc.groups}", dims_word(desc.src), desc.prop_kind.value
        )
    auxiliary += f" fuse:{desc.fuse}" * (desc.fuse != NONE)
    return Words("batch_normalization", auxiliary, dims_word(desc.src), desc.prop_kind.value)


def lrn_words(desc: LRNForward | LRNBackward) -> Words:
    numbers = f"size:{desc.local_size} alpha:{number_word(desc.alpha)} beta:{number_word(desc.beta)}"
    auxiliary = f"alg:{desc.alg} {numbers} k:{number_word(desc.k)}"
    return Words("lrn", auxiliary, dims_word(desc.src), desc.prop_kind.value)


def batch_norm_refusal(desc: BatchNormForward, attr: Attr) -> str:
    """Its own statistics are those of the batch."""
    return by_rows(desc, attr) if desc.use_global_stats else refused(desc, attr)


KINDS = (
    Kind(
        LayerNormForward, (layer_norm.plans,), layer_words, any_batch_refusal=by_rows, letters=LayerNormForward.letters
    ),
    Kind(BatchNormForward, (channel_norm.plan_batch_norm,), channel_words, any_batch_refusal=batch_norm_refusal),
    Kind(GroupNormForward, (channel_norm.plan_group_norm,), channel_words, any_batch_refusal=by_rows),
    Kind(LRNForward, (lrn.plans,), lrn_words, any_batch_refusal=by_rows),
    Kind(LRNBackward, (lrn_backward.plans,), lrn_words, any_batch_refusal=by_rows),
)
