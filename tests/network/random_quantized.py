"""Files of integers in the making: values of bytes, constants, weights.  quantized_operators.py has the operators.

Every value of bytes knows `off`, the steps of its scale by which two right answers may differ: one, where rounding
meets half a step from another side, and what the operator makes of differences in its operands.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx

from tests.network.random_nodes import Chance

MICROSOFT = "com.microsoft"
IMAGES = ((1, 3, 11, 9), (2, 16, 6, 6), (1, 24, 7, 5), (3, 1, 8, 6), (1, 17, 5, 12), (1, 64, 4, 4))
ROWS = ((2, 9, 24), (12, 16), (5, 33), (1, 64), (3, 4, 6, 8))
SEVEN_BITS = -64, 65  # on a CPU without VNNI onnxruntime adds products in pairs of 16 bits, which saturate with more


class Bytes(NamedTuple):
    """A value: its name in the file, dims, scale, zero point, type, and by how many steps it may be off."""

    name: str
    dims: tuple[int, ...]
    scale: np.float32
    zero: np.generic
    off: float

    @property
    def largest(self) -> float:
        """What its floats are at most."""
        limits = np.iinfo(self.zero.dtype)
        return float(self.scale) * max(int(limits.max) - int(self.zero), int(self.zero) - int(limits.min))

    @property
    def error(self) -> float:
        return float(self.scale) * self.off


class FileNodes:
    """Nodes and constants in the making."""

    def __init__(self) -> None:
        self.nodes, self.constants = list[Any](), list[Any]()

    def constant(self, data: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(data), name))
        return name

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        result = f"t{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op, inputs, [result], f"{op} {result}", domain=domain, **attributes))
        return result


class RandomFile(FileNodes):
    """One or two inputs as bytes, and what operators add."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance, self.values = Chance(seed), list[Bytes]()
        self.read, self.feeds, self.inputs = set[str](), dict[str, np.ndarray](), list[Any]()
        for name in "xy"[: self.chance.number(1, 2)]:
            self.add_input(name)

    def add_input(self, name: str) -> None:
        dims = self.chance.one_of(*(IMAGES if self.chance.is_so(0.7) else ROWS))
        x = self.feeds[name] = self.chance.array(*dims)
        self.inputs.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims))
        self.quantize(name, dims, 0.0, abs(x).max())
        self.values[-1] = self.values[-1]._replace(off=0.0)

    def value(self, fits: Callable[[Bytes], Any] = lambda x: True) -> Bytes | None:
        found = [x for x in self.values if fits(x)]
        return self.chance.one_of(*found, *found[-2:]) if found else None

    def numbers(self, largest: float) -> tuple[np.float32, np.generic]:
        """A scale and a zero point, with which some are cut off now and then."""
        c = self.chance
        scale = np.float32(largest / c.one_of(90, 127, 255) * c.one_of(0.5, 1, 1, 1.7))
        dtype = c.one_of(np.uint8, np.int8)
        limits = np.iinfo(dtype)
        return scale, dtype(c.one_of(0, limits.max // 2 + 1, c.number(limits.min, limits.max)))

    def numbers_like(self, x: "Bytes", largest: float) -> tuple[np.float32, np.generic]:
        """Of the type that a value has, as operators on integers want them."""
        scale, zero = self.numbers(largest)
        return scale, zero if zero.dtype == x.zero.dtype else x.zero.dtype.type(7)

    def names(self, scale: np.float32, zero: np.generic) -> tuple[str, str]:
        return self.constant(scale), self.constant(zero)

    def quantize(self, floats: str, dims: tuple[int, ...], error: float, largest: float) -> bool:
        """Bytes of floats that may differ by an error, and are rarely above a largest."""
        scale, zero = self.numbers(largest)
        return self.add(self.node("QuantizeLinear", floats, *self.names(scale, zero)), dims, error, scale, zero)

    def add(self, name: str, dims: tuple[int, ...], error: float, scale: np.float32, zero: np.generic) -> bool:
        self.values.append(Bytes(name, tuple(dims), scale, zero, 1 + error / float(scale)))
        return True

    def floats(self, x: Bytes) -> str:
        self.read.add(x.name)
        return self.node("DequantizeLinear", x.name, *self.names(x.scale, x.zero))

    def triple(self, x: Bytes) -> tuple[str, str, str]:
        self.read.add(x.name)
        return (x.name, *self.names(x.scale, x.zero))

    def weights(self, dims: tuple[int, ...], axis: int, terms: int, is_signed: bool) -> "Weights":
        """Integers with a scale, or several along an axis, of products whose results are of their operand's size."""
        c = self.chance
        dtype = np.int8 if is_signed else c.one_of(np.int8, np.uint8)
        limits = np.iinfo(dtype)
        drawn = SEVEN_BITS if dtype == np.int8 else (0, 256)
        integers = c.random.integers(*drawn, dims).astype(dtype)
        count = dims[axis] if c.is_so() else 1
        middle = 0 if dtype == np.int8 else 128
        zero = np.full(count, middle if c.is_so(0.7) else c.number(limits.min, limits.max), dtype)
        scales = (c.random.uniform(0.5, 1.5, count) / 70 / np.sqrt(terms)).astype(np.float32)
        spread = lambda x: x.reshape([-1 if i == axis % len(dims) else 1 for i in range(len(dims))])  # noqa: E731
        exact = (integers.astype(np.float64) - spread(zero)) * spread(scales)
        if count == 1 and c.is_so():
            scales, zero = scales.reshape(()), zero.reshape(())
        names = self.constant(integers), self.constant(scales), self.constant(zero)
        return Weights(names, scales, exact, axis)

    def bias(self, x: Bytes, w: "Weights", count: int) -> str:
        """32 bits in units of both scales, as QLinearConv takes it."""
        return self.constant(self.chance.random.integers(-3000, 3000, count).astype(np.int32))

    def float_bias(self, x: Bytes, w: "Weights", count: int) -> str:
        """Of floats, or of 32 bits."""
        if self.chance.is_so():
            return self.constant(self.chance.array(count))
        unit = (np.float32(x.scale) * w.scales).astype(np.float32)
        zero = np.zeros(unit.shape, np.int32)
        return self.node("DequantizeLinear", self.bias(x, w, count), self.constant(unit), self.constant(zero), axis=0)

    def outputs(self) -> list[Bytes]:
        """What nobody reads."""
        return [x for x in self.values if x.name not in self.read]

    def model(self) -> bytes:
        helper = onnx.helper
        types = [(x.name, helper.np_dtype_to_tensor_dtype(x.zero.dtype)) for x in self.outputs()]
        outputs = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in types]
        graph = helper.make_graph(self.nodes, "file", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


class Weights(NamedTuple):
    """names: integers, scales, zero points; exact: f64."""

    names: tuple[str, str, str]
    scales: np.ndarray
    exact: np.ndarray
    axis: int

    def gain(self) -> float:
        """What a product makes of an error of 1 in all its operand, at most."""
        axis = self.axis % self.exact.ndim
        return float(abs(self.exact).sum(tuple(i for i in range(self.exact.ndim) if i != axis)).max())
