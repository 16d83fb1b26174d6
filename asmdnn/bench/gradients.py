"""Gradients as cases: a description in oneDNN needs that of the forward pass, and some read the workspace it leaves."""

from collections.abc import Callable, Mapping
from typing import Any

from asmdnn.bench import typed
from asmdnn.bench.driver import Array, Data, PeerSide, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import FORWARD, NUMBERS, Peer, TensorWork, arguments

GRADIENTS = {"src": "diff_src", "dst": "diff_dst"}
BACKWARD = {"BWD_D": 160, "BWD_DW": 128}  # oneDNN's numbers: of data alone, of all


class GradientWork(TensorWork):
    """primitive: of oneDNN, whose functions are `primitive`_forward and _backward.  forward_takes: what the first takes
    between its propagation kind and the attributes; the second takes gradients in place of src and dst, and after them
    `reads`, unless `takes` says something else.  forward_tensors: what the forward pass reads and writes, where the
    gradient needs the workspace that it leaves."""

    exactness: tuple[bool, ...] = (False,)
    results: tuple[str, ...] = ("diff_src",)
    primitive = ""
    forward_takes: tuple[Any, ...] = ()
    reads: tuple[str, ...] = ()
    forward_tensors: tuple[str, ...] = ()

    def gradients(self, found: Mapping[str, tuple[Array, Array]]) -> Answer:
        """Of results by name, with their errors, all in a row."""
        return typed.together(typed.narrowed(*found[name], self.descs[name].dtype) for name in self.results)

    def forward(self, peer: Peer, src: Any, dst: Any) -> Any:
        """The handle of the forward pass in training, of descriptors of src and dst."""
        create = getattr(peer.lib, f"dnnl_{self.primitive}_forward_primitive_desc_create")
        takes = arguments(peer, self.forward_takes, {**peer.descs, "src": src, "dst": dst})
        return peer.describe(create, FORWARD["FWD_D"], *takes, peer.null)

    def backward(self, peer: Peer, forward: Any) -> Any:
        create = getattr(peer.lib, f"dnnl_{self.primitive}_backward_primitive_desc_create")
        takes = arguments(peer, self.takes or self.backward_takes(), peer.descs)
        return peer.describe(create, *takes, forward, self.attributes_of(peer))

    def backward_takes(self) -> list[Any]:
        """What follows from the forward pass."""
        found = [GRADIENTS.get(x, x) if isinstance(x, str) else x for x in self.forward_takes]
        at = found.index("diff_dst") + 1
        return [*found[:at], *self.reads, *found[at:]]

    def onednn(self, peer: Peer) -> Any:
        dst = peer.descs["diff_dst" if "diff_dst" in peer.descs else "dst"]
        return self.backward(peer, self.forward(peer, peer.descs["diff_src"], dst))

    def forward_data(self, data: Data) -> TensorData:
        """What the forward pass is run on, of those with a workspace."""
        raise NotImplementedError

    def peer(self, isa: str, threads: int) -> PeerSide:
        trained = self.forward_tensors and not self.lacks
        return TrainedPeer(self, isa, threads) if trained else super().peer(isa, threads)


class TrainedPeer:
    """oneDNN's gradient, with the workspace of its forward pass; a PeerSide."""

    def __init__(self, work: GradientWork, isa: str, threads: int) -> None:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor

        self.work, internal = work, {"workspace": NUMBERS["workspace"]}
        like = {"src": work.descs["diff_src"], "dst": work.descs["diff_dst"]}
        first = {name: Tensor(NUMBERS[name], work.descs.get(name) or like[name]) for name in work.forward_tensors}
        second = {name: tensor for name, tensor in work.peer_tensors().items() if name not in internal}
        self.forward = OnednnPrimitive(
            lambda peer: work.forward(peer, peer.descs["src"], peer.descs["dst"]), first, isa, threads,
            storage=Storage(internal),
        )  # fmt: skip
        self.backward = OnednnPrimitive(
            lambda peer: work.backward(peer, self.forward.desc), second, isa, threads, work.results,
            in_place=work.in_place, storage=Storage(internal, lender=self.forward),
        )  # fmt: skip

    @property
    def implementation(self) -> str:
        return str(self.backward.implementation)

    @property
    def run(self) -> Callable[[], object]:
        return self.backward.run

    def write(self, data: Data) -> None:
        self.forward.compute(self.work.forward_data(data))
        self.backward.write(data)

    def compute(self, data: Data) -> Array:
        self.write(data)
        self.run()
        return self.backward.read()

    def close(self) -> None:
        self.backward.close()
        self.forward.close()
