"""The backward pass of recurrent layers for the bench: what a training pass leaves, and its gradients."""

from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import Array, TensorData
from asmdnn.bench.recurrent.data import ArgumentSizes
from asmdnn.bench.values import poison
from asmdnn.types import f32

DESCRIPTIONS = {
    "VANILLA_RNN": dnn.VanillaRNNBackward,
    "VANILLA_LSTM": dnn.LSTMBackward,
    "VANILLA_GRU": dnn.GRUBackward,
    "LBR_GRU": dnn.LBRGRUBackward,
}
UNREAD = ("bias", "dst_iter", "dst_iter_c")  # by the backward pass


def description(alg: str, descs: dict[str, dnn.MemoryDesc], words: dict[str, Any]) -> Any:
    """The backward pass of a layer whose forward pass has these tensors; gradients are row-major."""
    read = {name: desc for name, desc in descs.items() if name not in UNREAD}
    plain = {name: dnn.MemoryDesc(x.dims, f32, "abcde"[: x.ndims]) for name, x in descs.items()}
    return DESCRIPTIONS[alg](**read, **{f"diff_{name}": plain[name] for name in descs}, **words)


def data(sizes: ArgumentSizes, forward: Any, arrays: dict[str, Array], engine: dnn.Engine) -> TensorData:
    """What the training pass leaves, computed by this library, random gradients of the results, and NaN."""
    pd = dnn.primitive_desc(forward, engine=engine)
    given = {name: arrays.get(name) for name in pd.plan.tensors}
    memories = {
        name: dnn.Memory(pd.plan.tensors[name])
        if array is None
        else dnn.Memory.from_numpy(array, pd.plan.tensors[name])
        for name, array in given.items()
    }
    dnn.Primitive(pd).bind(**memories)()
    left = {name: memories[name].numpy() for name, array in given.items() if array is None}
    random = np.random.default_rng(2)
    diffs = {f"diff_{name}": random.random(size, np.float32) * 2 - 1 for name, size in sizes.results().items()}
    unwritten = {name: poison(size, f32) for name, size in sizes.gradients().items()}
    return TensorData({**arrays, **left, **diffs, **unwritten}, False)
