"""What `--conv`, `--deconv` and `--ip` share: a layer with weights, forward or the gradients that `--dir` says."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import rounded_to
from asmdnn.bench.dims import desc_of
from asmdnn.bench.numbers import TypedNumbers
from asmdnn.bench.product_work import ProductSettings, ProductWork
from asmdnn.bench.tensor_work import Peer
from asmdnn.bench.words import direction, option
from asmdnn.errors import Unimplemented
from asmdnn.records import dataclass

FORWARD = MappingProxyType({"FWD_B": 64, "FWD_D": 64, "FWD_I": 96})  # oneDNN's numbers
WRITTEN = MappingProxyType({"BWD_D": ("src",), "BWD_W": ("weights",), "BWD_WB": ("weights", "bias")})
LAYER_DIRECTION = option(
    direction(*FORWARD, *WRITTEN),
    "FWD_B with bias (default), FWD_D, FWD_I inference; BWD_D data, BWD_W weights, BWD_WB both",
)
CHANNELS = MappingProxyType({"src": 1, "weights": 0, "dst": 1})


@dataclass(frozen=True, slots=True)
class WeightsSettings(ProductSettings):
    """mb 0: the problem's own."""

    dir: str = "FWD_B"
    mb: int = 0

    @property
    def has_bias(self) -> bool:
        """Whether there is one, or its gradient."""
        return self.dir in ("FWD_B", "BWD_WB") or (self.bia_dt != "undef" and self.dir in FORWARD)


class LayerProblem(Protocol):
    """The dims of a layer's tensors; oc: output channels."""

    @property
    def oc(self) -> int: ...
    @property
    def src_dims(self) -> tuple[int, ...]: ...
    @property
    def weights_dims(self) -> tuple[int, ...]: ...
    @property
    def dst_dims(self) -> tuple[int, ...]: ...


class WeightsWork(ProductWork):
    """kind: in the names of oneDNN's functions.  forms: descriptions of the forward pass, of the gradient of data, of
    that of weights.  names: of arguments by role, `diff_` in front of what is a gradient.

    algorithm: oneDNN's number, window: sizes for it, where the kind has them.
    """

    kind: str
    forms: ClassVar[tuple[type, ...]]
    algorithm: tuple[int, ...] = ()
    window: Mapping[str, tuple[int, ...]] = MappingProxyType({})

    def set_tensors(
        self, settings: WeightsSettings, problem: LayerProblem, strides: Mapping[str, tuple[int, ...]]
    ) -> None:
        """By layouts, types and direction."""
        self.dir, self.written = settings.dir, WRITTEN.get(settings.dir, ())
        p, types = problem, settings.types
        dims = {"src": p.src_dims, "weights": p.weights_dims, "bias": (p.oc,), "dst": p.dst_dims}
        tags = {"src": settings.stag, "weights": settings.wtag, "bias": "a", "dst": settings.dtag}
        used = [role for role in dims if role != "bias" or settings.has_bias]
        gradients = (*self.written, "dst") if self.written else ()
        self.names = {role: f"diff_{role}" if role in gradients else role for role in used}
        self.descs = {
            name: desc_of(dims[role], types[role].name, tags[role], strides.get(role, ()))
            for role, name in self.names.items()
        }
        self.results = tuple(self.names[role] for role in self.written or ("dst",))
        if self.written and (settings.scales or settings.zero_points):
            words = "--attr-scales" if settings.scales else "--attr-zero-points"
            raise Unimplemented(f"{words}: a gradient has none, leave it out with --dir={settings.dir}")
        if self.written:
            typed = {name: types[role] for role, name in self.names.items()}
            factors = tuple(name for role, name in self.names.items() if role not in self.written)
            self.typed = TypedNumbers(typed, rounded=rounded_to(settings.fpmath), factors=factors)
            self.attr = settings.attr(self.descs[self.results[0]].dims)
            self.exactness = chains.exactness(self.attr)
            if self.may_be_thrice:
                self.exactness = (False,)

    def set_description(self, **more: Any) -> None:
        """`more`: what a forward pass takes beside its direction, or a gradient."""
        form = self.forms[0 if not self.written else 1 if "src" in self.written else 2]
        if not self.written:
            inference = self.dir == "FWD_I"
            kind = dnn.PropKind.forward_inference if inference else dnn.PropKind.forward_training
            more["prop_kind"] = kind
        self.desc = form(**self.descs, **self.window, **more)

    def onednn(self, peer: Peer) -> Any:
        """A gradient takes the forward pass as a hint."""
        prefix, window = f"dnnl_{self.kind}", [peer.dims(sizes) for sizes in self.window.values()]
        given = {role: getattr(self.desc, name) for role, name in self.names.items()}
        tensors = {role: peer.layout(desc) for role, desc in given.items()}
        every = [tensors.get(role, peer.null) for role in ("src", "weights", "bias", "dst")]
        forward, arguments = (
            getattr(peer.lib, f"{prefix}_forward_primitive_desc_create"),
            (*self.algorithm, *every, *window),
        )
        if not self.written:
            return peer.describe(forward, FORWARD[self.dir], *arguments, self.attributes_of(peer))
        hint = peer.describe(forward, FORWARD["FWD_D"], *arguments, peer.null)
        of = "data" if "src" in self.written else "weights"
        backward = getattr(peer.lib, f"{prefix}_backward_{of}_primitive_desc_create")
        if of == "data":
            del every[2]
        return peer.describe(backward, *self.algorithm, *every, *window, hint, self.attributes_of(peer))
