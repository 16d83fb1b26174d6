"""Operations on arrays, for callers who do not care for formats: planned once for every shape, then only executed.

An operation is imported when it is first asked for, with what it needs: all of them take three times as long.
No module has the name of an operation, which importing the module would hide.
"""

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from asmdnn.errors import AsmdnnError, no_attribute
from asmdnn.forking import importing
from asmdnn.ops import older_names

if TYPE_CHECKING:
    from asmdnn.ops.adaptive_gradients import adaptive_avg_pool_gradient as adaptive_avg_pool_gradient
    from asmdnn.ops.adaptive_gradients import adaptive_max_pool_gradient as adaptive_max_pool_gradient
    from asmdnn.ops.attending import attention as attention
    from asmdnn.ops.attending import attention_gradient as attention_gradient
    from asmdnn.ops.batch_gradients import batch_norm_gradient as batch_norm_gradient
    from asmdnn.ops.conv import conv1d as conv1d
    from asmdnn.ops.conv import conv2d as conv2d
    from asmdnn.ops.conv import conv3d as conv3d
    from asmdnn.ops.conv import conv_transpose1d as conv_transpose1d
    from asmdnn.ops.conv import conv_transpose2d as conv_transpose2d
    from asmdnn.ops.conv import conv_transpose3d as conv_transpose3d
    from asmdnn.ops.conv_gradients import conv_input_gradient as conv_input_gradient
    from asmdnn.ops.conv_gradients import conv_transpose_input_gradient as conv_transpose_input_gradient
    from asmdnn.ops.conv_gradients import conv_transpose_weight_gradient as conv_transpose_weight_gradient
    from asmdnn.ops.conv_gradients import conv_weight_gradient as conv_weight_gradient
    from asmdnn.ops.conv_weights import pack_conv_transpose_weights as pack_conv_transpose_weights
    from asmdnn.ops.conv_weights import pack_conv_weights as pack_conv_weights
    from asmdnn.ops.elementwise import binary as binary
    from asmdnn.ops.elementwise import eltwise as eltwise
    from asmdnn.ops.elementwise import select as select
    from asmdnn.ops.inner_products import inner_product as inner_product
    from asmdnn.ops.lookup import embedding as embedding
    from asmdnn.ops.lookup import gather as gather
    from asmdnn.ops.lookup import scatter as scatter
    from asmdnn.ops.lookup_gradients import embedding_gradient as embedding_gradient
    from asmdnn.ops.lookup_gradients import gather_gradient as gather_gradient
    from asmdnn.ops.lookup_gradients import scatter_gradient as scatter_gradient
    from asmdnn.ops.lookup_gradients import topk_gradient as topk_gradient
    from asmdnn.ops.map_gradients import binary_gradient as binary_gradient
    from asmdnn.ops.map_gradients import eltwise_gradient as eltwise_gradient
    from asmdnn.ops.map_gradients import prelu_gradient as prelu_gradient
    from asmdnn.ops.map_gradients import select_gradient as select_gradient
    from asmdnn.ops.masking import dropout as dropout
    from asmdnn.ops.masking import stochastic_rounding as stochastic_rounding
    from asmdnn.ops.move_gradients import concat_gradient as concat_gradient
    from asmdnn.ops.move_gradients import expand_gradient as expand_gradient
    from asmdnn.ops.move_gradients import pad_gradient as pad_gradient
    from asmdnn.ops.move_gradients import slice_gradient as slice_gradient
    from asmdnn.ops.move_gradients import split_gradient as split_gradient
    from asmdnn.ops.moves import concat as concat
    from asmdnn.ops.moves import expand as expand
    from asmdnn.ops.moves import pad as pad
    from asmdnn.ops.moves import slice as slice
    from asmdnn.ops.moves import split as split
    from asmdnn.ops.nibble_products import pack_quantized_weights as pack_quantized_weights
    from asmdnn.ops.normalization import batch_norm as batch_norm
    from asmdnn.ops.normalization import group_norm as group_norm
    from asmdnn.ops.normalization import layer_norm as layer_norm
    from asmdnn.ops.normalization import lrn as lrn
    from asmdnn.ops.normalization import lrn_gradient as lrn_gradient
    from asmdnn.ops.normalization import rms_norm as rms_norm
    from asmdnn.ops.pool_gradients import avg_pool_gradient as avg_pool_gradient
    from asmdnn.ops.pool_gradients import max_pool_gradient as max_pool_gradient
    from asmdnn.ops.pooling import adaptive_avg_pool as adaptive_avg_pool
    from asmdnn.ops.pooling import adaptive_max_pool as adaptive_max_pool
    from asmdnn.ops.pooling import avg_pool as avg_pool
    from asmdnn.ops.pooling import max_pool as max_pool
    from asmdnn.ops.product_gradients import inner_product_input_gradient as inner_product_input_gradient
    from asmdnn.ops.product_gradients import inner_product_weight_gradient as inner_product_weight_gradient
    from asmdnn.ops.product_gradients import matmul_gradient as matmul_gradient
    from asmdnn.ops.products import matmul as matmul
    from asmdnn.ops.products import pack_weights as pack_weights
    from asmdnn.ops.ranking import argmax as argmax
    from asmdnn.ops.ranking import argmin as argmin
    from asmdnn.ops.ranking import topk as topk
    from asmdnn.ops.recurrent import gru as gru
    from asmdnn.ops.recurrent import lstm as lstm
    from asmdnn.ops.recurrent import pack_recurrent as pack_recurrent
    from asmdnn.ops.recurrent import rnn as rnn
    from asmdnn.ops.recurrent_gradients import gru_gradient as gru_gradient
    from asmdnn.ops.recurrent_gradients import lstm_gradient as lstm_gradient
    from asmdnn.ops.recurrent_gradients import rnn_gradient as rnn_gradient
    from asmdnn.ops.reduction import cumsum as cumsum
    from asmdnn.ops.reduction import reduce as reduce
    from asmdnn.ops.resampling import resize as resize
    from asmdnn.ops.resampling import resize_gradient as resize_gradient
    from asmdnn.ops.row_gradients import group_norm_gradient as group_norm_gradient
    from asmdnn.ops.row_gradients import layer_norm_gradient as layer_norm_gradient
    from asmdnn.ops.row_gradients import log_softmax_gradient as log_softmax_gradient
    from asmdnn.ops.row_gradients import rms_norm_gradient as rms_norm_gradient
    from asmdnn.ops.row_gradients import softmax_gradient as softmax_gradient
    from asmdnn.ops.slopes import prelu as prelu
    from asmdnn.ops.softmaxes import log_softmax as log_softmax
    from asmdnn.ops.softmaxes import softmax as softmax
    from asmdnn.ops.sum import weighted_sum as weighted_sum
    from asmdnn.ops.sum_gradients import cumsum_gradient as cumsum_gradient
    from asmdnn.ops.sum_gradients import dropout_gradient as dropout_gradient
    from asmdnn.ops.sum_gradients import reduce_gradient as reduce_gradient
    from asmdnn.ops.sum_gradients import weighted_sum_gradient as weighted_sum_gradient

MODULES = {
    "adaptive_gradients": ("adaptive_avg_pool_gradient", "adaptive_max_pool_gradient"),
    "batch_gradients": ("batch_norm_gradient",),
    "lookup_gradients": ("embedding_gradient", "gather_gradient", "scatter_gradient", "topk_gradient"),
    "map_gradients": ("binary_gradient", "eltwise_gradient", "prelu_gradient", "select_gradient"),
    "move_gradients": ("concat_gradient", "expand_gradient", "pad_gradient", "slice_gradient", "split_gradient"),
    "product_gradients": ("inner_product_input_gradient", "inner_product_weight_gradient", "matmul_gradient"),
    "sum_gradients": ("cumsum_gradient", "dropout_gradient", "reduce_gradient", "weighted_sum_gradient"),
    "pool_gradients": ("avg_pool_gradient", "max_pool_gradient"),
    "attending": ("attention", "attention_gradient"),
    "conv": ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    "conv_weights": ("pack_conv_transpose_weights", "pack_conv_weights"),
    "conv_gradients": (
        "conv_input_gradient", "conv_transpose_input_gradient", "conv_transpose_weight_gradient",
        "conv_weight_gradient",
    ),
    "elementwise": ("binary", "eltwise", "select"),
    "inner_products": ("inner_product",),
    "lookup": ("embedding", "gather", "scatter"),
    "masking": ("dropout", "stochastic_rounding"),
    "moves": ("concat", "expand", "pad", "slice", "split"),
    "normalization": ("batch_norm", "group_norm", "layer_norm", "lrn", "lrn_gradient", "rms_norm"),
    "pooling": ("adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "max_pool"),
    "products": ("matmul", "pack_weights"),
    "nibble_products": ("pack_quantized_weights",),
    "ranking": ("argmax", "argmin", "topk"),
    "recurrent": ("gru", "lstm", "pack_recurrent", "rnn"),
    "recurrent_gradients": ("gru_gradient", "lstm_gradient", "rnn_gradient"),
    "reduction": ("cumsum", "reduce"),
    "resampling": ("resize", "resize_gradient"),
    "row_gradients": (
        "group_norm_gradient", "layer_norm_gradient", "log_softmax_gradient", "rms_norm_gradient", "softmax_gradient",
    ),
    "slopes": ("prelu",),
    "softmaxes": ("log_softmax", "softmax"),
    "sum": ("weighted_sum",),
}  # fmt: skip
KINDS = f"{__name__}.kinds"
PLACES = {name: module for module, names in MODULES.items() for name in names}

__all__ = sorted(PLACES)


def __getattr__(name: str) -> Any:
    """Called for a name that is not here yet (PEP 562)."""
    if name not in PLACES:
        raise no_attribute(__name__, name, __all__)
    with importing():
        module = import_module(f"{__name__}.{PLACES[name]}")
    return globals().setdefault(name, of_callers_kind(getattr(module, name)))


def of_callers_kind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; for other arrays than numpy's by way of `kinds`, which gives back what came."""
    array, names = sys.modules["numpy"].ndarray, signature(function).parameters
    older = older_names.older_of(names)

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if older and not older.keys().isdisjoint(options):
            options = older_names.with_new_names(options, older)
        try:
            if arguments and type(arguments[0]) is array:  # nearly always, and all that these calls pay
                return function(*arguments, **options)
            kinds = sys.modules.get(KINDS) or import_module(KINDS)
            return kinds.called(function, arguments, options)
        except AsmdnnError as error:
            if not isinstance(error, MemoryError):  # there is none for other words
                with importing():
                    from asmdnn.ops.own_words import reworded
                reworded(error, function.__name__, names, options.get("out") is not None)
            raise

    call.__module__ = __name__  # where it is found, for pickle
    return call


def __dir__() -> list[str]:
    """For completion in a shell or a notebook."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
