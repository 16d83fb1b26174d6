"""Gradients of convolutions and deconvolutions in f32: data, the answer in float64 with its tolerance, and the peer.

The answer sums over kernel taps, as that of a forward pass does: what a tap multiplies there (taps.py) is found with
the pixels' numbers in the place of their values, and says here which pixel every product is added to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench import winograd
from asmdnn.bench.attributes import WeightsSettings
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.problems import FLOAT_BYTES, ConvProblem
from asmdnn.bench.products import Doubles, Filler, answer_of
from asmdnn.bench.taps import taps_of
from asmdnn.errors import Unimplemented
from asmdnn.primitives.convolution_backward.description import ConvolutionBackward
from asmdnn.types import Algorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

WRITTEN = {"BWD_D": ("diff_src",), "BWD_W": ("diff_weights",), "BWD_WB": ("diff_weights", "diff_bias")}
# Numbers of oneDNN's C interface.
ARGUMENTS = {
    "src": 1, "weights": 33, "diff_src": 129, "diff_weights": 161, "diff_bias": 169, "diff_dst": 145,
}  # fmt: skip
FORWARD_TRAINING = 64


@dataclass(frozen=True, slots=True)
class Gradient:
    """A driver's primitive: its name in the C interface, the gradients of data and of weights, and algorithms with
    oneDNN's numbers."""

    name: str
    descriptions: tuple[type[ConvolutionBackward], type[ConvolutionBackward]]
    algorithms: Mapping[str, Algorithm]
    of_onednn: Mapping[str, int]


class GradientWork(Work[TensorData]):
    """One direction of a case of `kind`."""

    def __init__(self, kind: Gradient, settings: WeightsSettings, alg: str, problem: ConvProblem) -> None:
        if settings.dt != "f32":
            raise Unimplemented(f"--dt={settings.dt}: gradients are built in f32 only")
        self.kind, self.settings, self.problem, self.alg = kind, settings, problem, alg
        self.form, self.written = kind.descriptions[settings.dir != "BWD_D"], WRITTEN[settings.dir]
        p = problem
        dims = {"src": p.src_dims, "weights": p.weights_dims, "bias": (p.oc,), "dst": p.dst_dims}
        tags = {"src": settings.stag, "weights": settings.wtag, "bias": "a", "dst": settings.dtag}
        names = {role: name for role, name in self.form.roles.items() if role != "bias" or name in self.written}
        self.descs = {name: desc_of(dims[role], "f32", tags[role]) for role, name in names.items()}
        self.attr = settings.attr(p.dst_dims)
        self.flops = p.flops
        pixels = p.mb * int(np.prod([axis.o for axis in p.axes]))
        self.reduction = pixels if "src" in names.values() else p.reduction * p.oc // p.ic
        self.exactness = (True, False) if alg == "direct" else (False,)

    @property
    def argument_bytes(self) -> int:
        return sum(int(np.prod(desc.dims)) for desc in self.descs.values()) * FLOAT_BYTES

    def describe(self) -> tuple[ConvolutionBackward, dnn.Attr]:
        p = self.problem
        window: dict[str, Any] = {
            "strides": p.strides, "dilations": p.dilations, "padding_l": p.padding_l, "padding_r": p.padding_r,
            "algorithm": self.kind.algorithms[self.alg],
        }  # fmt: skip
        return self.form(**self.descs, **window), self.attr

    def data(self, exact: bool) -> TensorData:
        fill = Filler(self.reduction, exact)
        read = [name for name in self.descs if name not in self.written]
        first, second = (self.descs[name].dims for name in read)
        arrays = dict(zip(read, fill.factors(first, second), strict=True))
        arrays |= {name: fill.dst(self.descs[name].dims, False) for name in self.written}
        return TensorData(arrays, exact)

    def answer(self, data: TensorData) -> Answer:
        values, size = self.of_data(data) if "diff_src" in self.written else self.of_weights(data)
        return answer_of((values, size), self.reduction, data.exact)

    def tolerance(self, data: TensorData) -> npt.NDArray[Any] | float:
        return self.answer(data).tolerance

    def of_data(self, data: TensorData) -> tuple[Doubles, Doubles]:
        """diff_src, and the norms of what each sum multiplies: of the window's diff_dst, times that of the weights."""
        p, (g, into, out) = self.problem, self.channels
        filters = data.arrays["weights"].astype(np.float64).reshape(g, out, into, -1)
        dst = data.arrays["diff_dst"].astype(np.float64).reshape(p.mb, g, out, -1)
        total, squares = (np.zeros((p.mb, g, n, 1 + int(np.prod(p.src_dims[2:])))) for n in (into, 1))
        for tap, places in self.places():
            total[..., places] += np.swapaxes(filters[..., tap], -1, -2) @ dst
            squares[..., places] += np.square(dst).sum(axis=2, keepdims=True)
        norms = np.sqrt(np.square(filters).sum(axis=(1, 3)))[:, :, None]
        size = (np.sqrt(squares[..., 1:]) * norms).reshape(p.src_dims)
        if self.alg != "direct" and p.is_dense_3x3:  # Winograd's: a convolution of diff_dst with turned weights
            axes = tuple(axis._replace(i=axis.o, o=axis.i, p=axis.k - 1 - axis.p) for axis in p.axes)
            turned = replace(p, ic=p.oc, oc=p.ic, axes=axes)
            size = np.maximum(size, winograd.size_of_sums(turned, data.arrays["diff_dst"], norms.ravel()))
        return total[..., 1:].reshape(p.src_dims), size

    def of_weights(self, data: TensorData) -> tuple[Doubles, Doubles]:
        """diff_weights, then diff_bias, flat if there are both, and the norms of what each sum multiplies."""
        p, (g, into, out) = self.problem, self.channels
        src = data.arrays["src"].astype(np.float64).reshape(p.mb, g, into, -1)
        src = np.pad(src, ((0, 0), (0, 0), (0, 0), (1, 0)))
        dst = data.arrays["diff_dst"].astype(np.float64).reshape(p.mb, g, out, -1)
        products = [np.einsum("ngop,ngip->goi", dst, src[..., places], optimize=True) for _, places in self.places()]
        values = np.stack(products, -1)
        of_src, of_dst = (np.sqrt(np.square(x).sum(axis=(0, 3))) for x in (src, dst))
        size = np.broadcast_to((of_dst[:, :, None] * of_src[:, None])[..., None], values.shape)
        if "diff_bias" not in self.written:
            return values.reshape(p.weights_dims), size.reshape(p.weights_dims)
        both = (values, dst.sum(axis=(0, 3))), (size, np.abs(dst).sum(axis=(0, 3)))
        flat = [np.concatenate((first.ravel(), second.ravel())) for first, second in both]
        return flat[0], flat[1]

    @property
    def channels(self) -> tuple[int, int, int]:
        """Groups, and a group's input and output channels."""
        p = self.problem
        return p.groups, p.ic // p.groups, p.oc // p.groups

    def places(self) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """For every kernel tap, its number and one more than the source pixel that each output pixel multiplies; 0
        outside."""
        pixels = self.problem.src_dims[2:]
        numbers = 1.0 + np.arange(int(np.prod(pixels))).reshape(1, *pixels)
        for number, (_, found) in enumerate(taps_of(self.problem, numbers)):
            yield number, found.ravel().astype(np.int64)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

        tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in self.descs.items()}
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, self.written)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        p, alg = self.problem, self.kind.of_onednn[self.alg]
        sides = [peer.dims(sizes) for sizes in (p.strides, p.dilations, p.padding_l, p.padding_r)]
        given = [peer.descs.get(name, peer.null) for name in self.form.roles.values()]
        bias = [peer.null] * ("bias" not in self.form.roles)
        roles = given[:2] + bias + given[2:]
        create = f"dnnl_{self.kind.name}_forward_primitive_desc_create"
        hint = peer.describe(getattr(peer.lib, create), FORWARD_TRAINING, alg, *roles, *sides, peer.null)
        direction = "data" if "diff_src" in self.written else "weights"
        create = f"dnnl_{self.kind.name}_backward_{direction}_primitive_desc_create"
        return peer.describe(getattr(peer.lib, create), alg, *given, *sides, hint, attributes(peer, self.attr))
