"""Expected cycles of products of f32 and of a narrower type, by which narrowing.py chooses."""

from math import prod

from asmdnn.isa.dot import Types, levels_of
from asmdnn.network.descriptors import any_format, channels_last, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.convolutions import convolution, deconvolution, scale_mask
from asmdnn.network.lowering.recurrent import sequences
from asmdnn.network.steps import Steps
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.attributes.post_ops import Binary
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardData, ConvolutionBackwardWeights
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.widening import cycles_of_fma
from asmdnn.primitives.elementwise.eltwise import EltwiseForward
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.records import replace
from asmdnn.types import DataType, PropKind, f32

Dims = tuple[int, ...]
RECURRENT = {"LSTM", "GRU", "RNN"}
RESULTS: dict[type, str] = {  # tensors of which a row is a pixel, where that is not dst
    ConvolutionBackwardData: "diff_src",
    ConvolutionBackwardWeights: "diff_dst",
}


class Costs:
    """Of groups of a graph whose steps nobody has lowered.  All raise Unimplemented where nothing takes a type.

    types: what narrow products multiply."""

    def __init__(self, steps: Steps, types: Types) -> None:
        self.steps, self.graph, self.types = steps, steps.graph, types

    def both(self, group: Group) -> tuple[int, int]:
        """Of a product of f32, and of a narrow one."""
        return self.cycles(self.description(group, f32)), self.cycles(self.description(group, self.types.src))

    def has_pairs(self, group: Group) -> bool:
        """Whether narrow pairs are multiplied where they may be: recurrent layers count all types alike, and take them
        on CPUs that are quick at it."""
        return self.multiplies_pairs(self.steps.asking.planned(self.description(group, self.types.src)).implementation)

    def multiplies_pairs(self, implementation: str) -> bool:
        """Whether an implementation's level has their instruction, which plans count as one FMA."""
        return bool(levels_of(self.types, implementation.rpartition(":")[2]))

    def gains_apart(self, group: Group, x: str, scales: str) -> bool:
        """Whether a narrow convolution after a product of its operand by scales is faster than one of f32 that
        scales by itself."""
        wide, narrow = self.description(group, f32), self.description(group, self.types.src)
        mask = scale_mask(self.graph.shape(scales), self.graph.shape(x))
        before = self.cycles(wide, Attr(scales={"src": mask}))
        dims = self.graph.shape(x)
        image, numbers = channels_last(dims, self.types.src), channels_last(self.graph.shape(scales), f32)
        product = EltwiseForward(PropKind.forward_inference, "linear", image, image, 1.0, -0.0)
        return self.cycles(product, Attr([Binary("mul", numbers)])) + self.cycles(narrow) < before

    def conversion(self, dims: tuple[int, ...]) -> int:
        """Of a tensor of f32."""
        return self.cycles(Reorder(row_major(dims), row_major(dims, self.types.src)))

    def cycles(self, desc: Description, attr: Attr = NO_ATTR) -> int:
        """Expected; of pairs by vectors as long as the CPU class takes, where weights are not what takes it."""
        pd, numbers = self.steps.asking.planned(desc, attr), self.steps.engine.tuning.products
        has_rows = isinstance(desc, MatMul) or hasattr(desc, "strides")
        if not has_rows or not self.multiplies_pairs(pd.implementation):
            return pd.plan.cycles
        dims = getattr(desc, RESULTS.get(type(desc), "dst")).dims
        rows = prod(dims) // (dims[-1] if isinstance(desc, MatMul) else dims[1])
        return pd.plan.cycles if rows <= numbers.half_weights_rows else cycles_of_fma(pd.plan, self.steps.engine)

    def description(self, group: Group, dtype: DataType) -> Description:
        """The main node's product."""
        node = group.node
        if node.op in RECURRENT:
            layer: Description = sequences(self.steps, node, dtype)
            return layer
        if node.op == "Conv":
            return retyped(convolution(self.steps, node), dtype)
        if node.op == "ConvTranspose":
            return retyped(deconvolution(self.steps, node), dtype)
        right = self.graph.shape(node.inputs[1])
        if not self.graph.is_constant(node.inputs[1]):
            return of_data(self.graph.shape(node.inputs[0]), right, self.graph.shape(group.x), dtype)
        k, n = right[::-1] if node.get("transB", 0) else right[-2:]
        rows = prod(self.graph.shape(group.x)) // n
        return retyped(MatMul(row_major((rows, k)), any_format((k, n)), row_major((rows, n))), dtype)


def of_data(left: Dims, right: Dims, result: Dims, dtype: DataType) -> MatMul:
    """A product of two tensors of a type in row-major order, with batch axes of 1 in front."""
    src, weights = (row_major((1,) * (len(result) - len(dims)) + dims, dtype) for dims in (left, right))
    return MatMul(src, weights, row_major(result))


def retyped(desc: Description, dtype: DataType) -> Description:
    """The same product of a type; its bias stays f32."""
    tensors = {name: getattr(desc, name) for name in ("src", "weights", "dst")}
    return replace(
        desc, **{n: any_format(x.dims, dtype) if x.is_any else row_major(x.dims, dtype) for n, x in tensors.items()}
    )
