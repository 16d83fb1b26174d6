"""Models with something wrong in them, by a seed; what becomes of one is counted, and must be no foreign error.

`python -m tests.network.wrong_models FIRST COUNT` loads and runs some in bounded memory and prints what became of them.
"""

import json
import resource
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.errors import LONGEST_MESSAGE, AsmdnnError, InvalidArguments, OutOfMemory, Unimplemented
from asmdnn.network.operators.attributes import ATTRIBUTES, NONE
from tests.network import wire
from tests.network.nets import engine
from tests.network.valid_nodes import NODES, Operand, ValidNode

MEMORY_BYTES = 6 << 30  # of a process, address space that nobody touches included
SECONDS, WALL_SECONDS = 30, 600  # for one model: of CPU, and by the clock, for what waits and does nothing
MOST_FED_BYTES = 64 << 20
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    4,
    5,
    7,
    12,
    32,
    -2,
    -33,
    100,
    2**15,
    2**20,
    2**31 - 1,
    2**31,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
)
REALS = (0.0, -1.0, 0.5, 1e30, -1e38, float("nan"), float("inf"), -float("inf"), 1e-45)
TYPES = tuple(wire.CODES)
WORDS = (
    "", "x", "none", "linear", "nearest", "SAME_LOWER", "wrap", "reverse", "ij,jk", "...i->i", "ii->i", "Relu",
    "tf_crop_and_resize",
)  # fmt: skip
NAMES = ("axis", "axes", "perm", "pads", "alpha", "epsilon", "kernal_shape", "to", "mode", "keepdims", "k")
KINDS = ("an integer", "integers", "a number", "numbers", "a text", "texts", "a tensor", "a graph")
RAN = "ran"
ERRORS = (InvalidArguments, OutOfMemory, Unimplemented, AsmdnnError)


class WrongModel:
    """data: the file; fallback: what it is loaded with; inputs: dims and types that it declares."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.inputs: dict[str, tuple[tuple[int, ...], str]] = {}
        self.constants: dict[str, Any] = {}
        self.nodes, self.made = list[bytes](), list[str]()
        for _ in range(self.one(1, 1, 2, 3)):
            self.add(self.one(*NODES))
        if self.chance(0.05):
            self.double()
        outputs = list(dict.fromkeys(x for x in self.made if x or self.chance(0.1))) or ["nobody"]
        opset = self.one(7, 9, 11, 12, 13, 17, 18, 21, 22, 24, 28)
        declared = {name: shape for name, (shape, _) in self.inputs.items()}
        types = {name: dtype for name, (_, dtype) in self.inputs.items()}
        data = wire.model(wire.graph(self.nodes, declared, outputs, self.constants, types), opset)
        self.data = self.cut(bytearray(data)) if self.chance(0.05) else data
        self.fallback = self.one(None, "numpy", "numpy")

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def one(self, *some: Any) -> Any:
        return some[self.random.integers(len(some))]

    def add(self, node: ValidNode) -> None:
        """A node, most of the time damaged in some ways, or in a branch."""
        names = [self.operand(x) for x in node.operands]
        outputs = [f"y{len(self.made) + i}" for i in range(node.outputs)]
        attributes, self.op = dict(node.attributes), node.op
        for _ in range(self.one(0, 0, 1, 1, 2)):
            damage = self.one(self.damage_names, self.damage_attribute, self.damage_attribute)
            damage(names, outputs, attributes)
        if self.chance(0.03):
            self.op = self.one(*NODES).op
        inner = wire.node(self.op, names, outputs, self.one("", "n"), **attributes)
        self.nodes.append(self.inside(inner, outputs) if self.chance(0.08) else inner)
        self.made += outputs

    def operand(self, x: Operand) -> str:
        """An input, a constant, or what a node before has made; perhaps of other dims, type or data."""
        if self.made and self.chance(0.4):
            return str(self.one(*self.made))
        shape, dtype, data = x
        if self.chance(0.12):
            shape = self.damaged_dims(shape)
            fits = data is not None and data.size == np.prod(shape, dtype=float)
            data = data.reshape(shape) if fits else data
        if self.chance(0.06):
            dtype = self.one(*TYPES)
        if data is not None and self.chance(0.15):
            data = self.damaged_data(np.asarray(data))
        name = f"x{len(self.inputs) + len(self.constants)}"
        if (data is None) == self.chance(0.93):
            self.inputs[name] = shape, dtype
            return name
        if data is None:
            data = np.ones(shape if np.prod(shape, dtype=float) < 1000 else (2, 2))
        with np.errstate(all="ignore"):
            bits = np.asarray(data).astype(np.float64 if np.asarray(data).dtype.kind == "f" else np.int64)
            self.constants[name] = bits.astype(dtype)
        return name

    def damaged_dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        dims = list(shape)
        match self.random.integers(5):
            case 0 if dims:
                dims.pop(self.random.integers(len(dims)))
            case 1:
                dims.insert(self.random.integers(len(dims) + 1), self.one(1, 1, 2, 0))
            case 2 if dims:
                dims[self.random.integers(len(dims))] = abs(self.one(*NUMBERS[:-1]))
            case 3:
                self.random.shuffle(dims)
            case _:
                dims = list(self.one((), (0,), (1,), (5,), (2, 3, 4, 5, 6), (1, 1), (1 << 20, 1 << 20), (3, 0, 2)))
        return tuple(int(n) for n in dims)

    def damaged_data(self, data: Any) -> Any:
        found = data.astype(np.float64 if data.dtype.kind == "f" else object).ravel()
        if not len(found) or self.chance(0.2):
            return data.ravel()[: self.one(0, 1, 2)]
        found[self.random.integers(len(found))] = self.one(*(REALS if data.dtype.kind == "f" else NUMBERS))
        return found.reshape(data.shape)

    def damage_names(self, names: list[str], outputs: list[str], attributes: dict[str, Any]) -> None:
        """Of inputs or outputs: one more, one less, an empty one, twice the same, or of nobody."""
        some = names if self.chance(0.7) else outputs
        at = int(self.random.integers(len(some) + 1))
        match self.random.integers(6):
            case 0 if some:
                some.pop(at - 1)
            case 1 if some:
                some[at - 1] = ""
            case 2:
                some.insert(
                    at,
                    self.operand(self.one(*self.one(*NODES).operands, Operand((2, 6))))
                    if some is names
                    else f"more {at}",
                )
            case 3:
                some += self.one([""], ["", ""], ["nobody"])
            case 4 if len(some) > 1:
                self.random.shuffle(some)
            case 5 if some:
                some.insert(at, some[at - 1])

    def damage_attribute(self, names: list[str], outputs: list[str], attributes: dict[str, Any]) -> None:
        """Left out, unknown, of another kind, or of its kind and any value."""
        known = ATTRIBUTES.get(self.op, NONE)
        if self.chance(0.1) or not known:
            attributes[self.one(*NAMES)] = self.junk(self.one(*KINDS))
            return
        name = self.one(*attributes, *known) if attributes.keys() <= known.keys() else self.one(*known)
        value = attributes.get(name)
        if self.chance(0.1):
            attributes.pop(name, None)
        elif isinstance(value, list) and value and self.chance(0.6):
            value = list(value)
            value[self.random.integers(len(value))] = self.one(*NUMBERS)
            attributes[name] = self.one(value, value, value[1:], value + value[:1])
        else:
            kind = known[name].kind if self.chance(0.9) else self.one(*KINDS)
            attributes[name] = self.junk(kind)

    def junk(self, kind: str) -> Any:
        """Something of a kind, as the table of attributes calls it."""
        if kind.startswith("one of "):
            return self.one(*kind.removeprefix("one of ").split(", "), self.one(*WORDS))
        numbers = [int(self.one(*NUMBERS)) for _ in range(self.one(0, 1, 2, 2, 3, 4, 4, 8))]
        reals = [float(self.one(*REALS)) for _ in range(self.one(1, 2, 3))]
        return {
            "an integer": self.one(*NUMBERS), "integers": numbers, "a number": self.one(*REALS), "numbers": reals,
            "a text": self.one(*WORDS), "texts": [self.one(*WORDS) for _ in reals], "a tensor": np.float32(reals),
        }.get(kind, b"")  # fmt: skip

    def inside(self, node: bytes, outputs: list[str]) -> bytes:
        """A node in both branches of an If, or in a loop."""
        body = wire.graph([node], {}, outputs)
        decision = self.operand(Operand((), "bool", np.array(True)))
        if self.chance(0.5):
            return wire.node("If", [decision], [f"{x}" for x in outputs], then_branch=body, else_branch=body)
        rounds = self.operand(Operand((), "int64", np.array(self.one(0, 1, 3, 3, 2**40))))
        going = wire.node("Identity", ["on"], ["go"])
        body = wire.graph([node, going], {"i": (), "on": ()}, ["go", *outputs])
        return wire.node("Loop", [rounds, self.one(decision, "")], [f"{x}" for x in outputs], body=body)

    def double(self) -> None:
        """A constant that every node makes larger."""
        self.constants["c0"] = np.ones((4, 4), np.float32)
        self.constants["twice"] = np.array([2, 2])
        op = self.one("Concat", "Tile", "MatMul", "Sum", "Loop")
        for i in range(self.one(5, 40)):
            now, then = f"c{i}", f"c{i + 1}"
            if op == "Tile":
                self.nodes.append(wire.node("Tile", [now, "twice"], [then]))
            elif op == "Loop":
                body = wire.graph(
                    [wire.node("Concat", ["v", "v"], ["w"], axis=0)], {"i": (), "on": (), "v": ()}, ["on", "w"]
                )
                self.constants.setdefault("rounds", np.array(60))
                self.nodes.append(wire.node("Loop", ["rounds", "", now], [then], body=body))
            else:
                axis = {"axis": 0} if op == "Concat" else {}
                self.nodes.append(wire.node("Concat" if op == "MatMul" and i % 4 else op, [now, now], [then], **axis))
            self.made.append(then)

    def cut(self, data: bytearray) -> bytes:
        """The file with some octets changed, left out or doubled."""
        for _ in range(self.one(1, 2, 4)):
            at = int(self.random.integers(len(data)))
            match self.random.integers(3):
                case 0:
                    data[at] = int(self.random.integers(256))
                case 1:
                    del data[at : at + int(self.random.integers(1, 8))]
                case _:
                    data[at:at] = data[at : at + int(self.random.integers(1, 30))]
            data = data or bytearray(b"\0")
        return bytes(data)

    def feeds(self, inputs: Mapping[str, tuple[tuple[int, ...], Any]]) -> dict[str, Any] | None:
        """Data for a network, odd now and then; None if that were much."""
        if sum(float(np.prod(shape, dtype=float)) for shape, _ in inputs.values()) * 8 > MOST_FED_BYTES:
            return None
        made = {}
        for name, (shape, dtype) in inputs.items():
            array = np.asarray(self.random.standard_normal(shape) * self.one(1, 1, 100))
            if array.size and self.chance(0.2):
                array.reshape(-1)[0] = self.one(*REALS)
            with np.errstate(all="ignore"):
                if np.dtype(dtype).kind in "iu" and self.chance(0.7):
                    array = array % 2
                made[name] = array.astype(dtype)
        return made


def outcome(seed: int) -> str:
    """The name of the library's error, or that it ran.  Raises whatever else happens, warnings too."""
    wrong = WrongModel(seed)
    try:
        net = dnn.load_onnx(wrong.data, engine=engine(), fallback=wrong.fallback)
        feeds = wrong.feeds(net.inputs)
        if feeds is None:
            return "loaded"
        results = net.run(feeds)
    except AsmdnnError as error:
        text = str(error)
        assert 0 < len(text) <= LONGEST_MESSAGE and "\n" not in text, text
        return next(kind.__name__ for kind in ERRORS if isinstance(error, kind))
    for name, (shape, dtype) in net.outputs.items():
        if shape is not None:  # which data decide
            assert (results[name].shape, results[name].dtype) == (shape, dtype), name
    return RAN


def out_of_time(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s of CPU, or {WALL_SECONDS} s by the clock")


def main(first: int, count: int) -> None:
    """Prints a number before each model, and in the end a line of JSON: how often what happened, and failures."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for limit in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(limit, out_of_time)
    warnings.simplefilter("error")
    found, failures = Counter[str](), dict[int, str]()
    for seed in range(first, first + count):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(WALL_SECONDS)
        try:
            found[outcome(seed)] += 1
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if "asmdnn" in frame.filename][-1:]
            where = ", ".join(f"{frame.filename.rpartition('asmdnn/')[2]}:{frame.lineno}" for frame in own)
            failures[seed] = f"{type(error).__name__} {error} at {where}"[:300]
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.write(json.dumps([found, failures]) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
