"""Networks written in Python: ONNX's operators applied to symbols.

graph = dnn.Graph()
x = graph.input("x", (1, 3, 224, 224))
y = graph.apply("Relu", graph.apply("Conv", x, weights, pads=(1, 1, 1, 1)) + bias)
net = graph.compile(y=y)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.foreign import rounded_f32
from asmdnn.network.applying import check_applied, check_made
from asmdnn.network.calibration import network_within
from asmdnn.network.declaring import declared
from asmdnn.network.graph import LARGEST_DIM, NOTHING, Array, Body, Model, Node, TensorType
from asmdnn.network.learning import LearnsParameters
from asmdnn.network.narrow.storage import ErrorLimit, Precision, limit_of, precision_of
from asmdnn.network.network import Network
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.stateful import written_nodes
from asmdnn.network.states import NetworkState, checked_state
from asmdnn.network.symbols import Held
from asmdnn.network.symbols import Symbol as Symbol
from asmdnn.primitives.attributes.user_post_op import trace
from asmdnn.primitives.core.engine import Engine, engine_asking
from asmdnn.records import replace

OPSET = 22  # the operator set whose meaning nodes have


class Graph(LearnsParameters):
    """A network as it is written down; `compile` makes a Network of it, as often as wanted.

    name: what it is called where it is shown.  seed: an integer from 0 on, for the parameters' initial values.  Raises
    InvalidArguments.
    """

    def __init__(self, name: str = "graph", seed: int = 0) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArguments(f"name must be a name, such as 'classifier', not {shown(name)}")
        if type(seed) is not int or not 0 <= seed <= LARGEST_DIM:
            raise InvalidArguments(f"seed must be an integer from 0 to 2**63 - 1, not {shown(seed)}")
        self.name, self.seed = name, seed
        self._inputs: dict[str, TensorType] = {}
        self._constants: dict[str, Array] = {}
        self._nodes: list[Node] = []
        self._states: dict[str, NetworkState] = {}
        self._parameters: dict[str, tuple[int, ...]] = {}
        self._written: dict[str, str] = {}  # for refusals of gradients (gradients/asked.py)
        self._ends: tuple[str, ...] = ()
        self._known: dict[str, Value] = {}  # of values whose dims were asked for

    def __repr__(self) -> str:
        own = {name for state in self._states.values() for name in (state.name, state.now)}
        inputs = ", ".join(f"{name} {of}" for name, of in self._inputs.items() if name not in own)
        return f"<Graph {self.name!r}: inputs {inputs or 'none'}; {len(self._nodes)} nodes>"

    @property
    def nodes(self) -> tuple[Node, ...]:
        """What was applied, in that order."""
        return tuple(self._nodes)

    def input(self, name: str, shape: tuple[int | str | None, ...], dtype: Any = np.float32) -> Symbol:
        """What a caller passes; dims that are no integers are said when the graph is compiled."""
        if not isinstance(name, str) or not name or name in self._inputs:
            raise InvalidArguments(f"name must be a name that no other input has, not {shown(name)}")
        if name in self._constants or any(name in node.outputs for node in self._nodes):
            raise InvalidArguments(f"{shown(name)} is an inner value of the graph, call the input something else")
        self._inputs[name] = declared(name, shape, dtype)
        return Symbol(self, name)

    def state(
        self, name: str, shape: Sequence[int], dtype: Any = np.float32, initial: Any = 0, trainable: bool = False
    ) -> Symbol:
        """A value that stays between calls: what this symbol reads is what it was before the call.

        shape: dims, which are fixed; dtype: float32, float16, bfloat16, bool, int64, int32, int8 or uint8; initial: a
        number, or an array of these dims.  `update` says what it becomes; `net.state[name]` is its array, `net.reset()`
        sets it to its initial value.  A network with state serves one call at a time.  trainable: whether it is a
        parameter, which `train` learns and updates, of float32.  Raises InvalidArguments.
        """
        if type(trainable) is not bool:
            raise InvalidArguments(f"trainable must be True or False, not {shown(trainable)}")
        symbol = self.input(name, shape, dtype)  # type: ignore[arg-type]
        declared = self._inputs[name]
        assert declared.shape is not None
        try:
            data = checked_state(name, declared.shape, declared.dtype, initial)
            if trainable and data.dtype != np.float32:
                raise InvalidArguments(f"parameter {name} is {data.dtype.name}, only float32 is learned")
        except InvalidArguments:
            del self._inputs[name]
            raise
        self._states[name] = NetworkState(name, data)
        if trainable:
            self._parameters[name] = declared.shape  # type: ignore[assignment]  # of numbers, as it was checked
        return symbol

    def update(self, state: Symbol, value: Any, at: Any = None) -> Symbol:
        """Have a call write a value into a state, in place, when all that reads the state has run.

        value: of the state's dims, cast to its type unless that is float32; or less along one axis, and then written
        from `at` on: an integer, or an input or a state of one integer, such as the position in a ring buffer.
        Integers and truths are written whole.  Returns what the state becomes, which may be read, too.  Raises
        InvalidArguments, also for a second update of a state; a call does for a position that is outside.
        """
        known = self._states.get(state.name) if isinstance(state, Symbol) and state.graph is self else None
        if known is None:
            raise InvalidArguments(f"state must be what state() of this graph returned, not {shown(state)}")
        if known.written:
            raise InvalidArguments(f"state {known.name} is updated twice: make one value of both")
        place = self._place(known, at)
        source = self._operand(value)
        if source == NOTHING:
            raise InvalidArguments("value must be a Symbol, an array or a number, not None")
        named = self._inputs[known.name]
        self._states[known.name] = updated = replace(
            known,
            written=self._free(f"{known.name} is written"),
            at=place,
            now="" if at is None else self._free(f"{known.name} as it is now"),
        )
        if updated.now:
            self._inputs[updated.now] = named
        nodes = written_nodes(updated, source, named)
        self._nodes += nodes
        becomes = nodes[-1].outputs[0] if not known.is_float else nodes[-1].inputs[0]
        return Symbol(self, updated.now or becomes)

    def _place(self, state: NetworkState, at: Any) -> int | str:
        """Where a state is written, as `update` takes it.  Raises InvalidArguments."""
        if at is not None and not state.is_float:
            words = f"state {state.name} is {state.initial.dtype.name}, and written whole"
            raise InvalidArguments(f"{words}: leave out at, and make the whole of it, as by ScatterElements")
        if isinstance(at, Symbol) and at.graph is self and at.name in self._inputs:
            other = self._states.get(at.name)
            if other is None or other.initial.dtype.kind == "i":
                return at.name
        elif at is None or (type(at) is int and at >= 0):
            return at or 0
        words = "at must be None, an integer from 0 on, or an input or a state of one"
        raise InvalidArguments(f"{words}, not {shown(at)}")

    def apply(self, op: str, *operands: Any, results: int = 1, name: str = "", **attributes: Any) -> Any:
        """An operator of ONNX: its result as a Symbol, or a tuple of several.

        operands: symbols, arrays and numbers, which are constants, f32 unless they are integer arrays, or None for an
        input that is left out.  Raises InvalidArguments.
        """
        composed = check_applied(op, results, name, attributes)
        inputs = tuple(self._operand(operand) for operand in operands)
        outputs = tuple(self._free(f"{op} {len(self._nodes)}" + (f".{i}" if i else "")) for i in range(results))
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in attributes.items()}
        node = Node(op, inputs, outputs, attributes=values, name=name, domain="", opset=OPSET)
        check_made(node, composed)
        self._nodes.append(node)
        made = tuple(Symbol(self, output) for output in outputs)
        return made if results > 1 else made[0]

    def map(self, function: Callable[..., Any], *operands: Any, name: str = "") -> Symbol:
        """A function of your own, element by element, which becomes part of a kernel as a `dnn.PostOp` does.

        function(x, ...) is written with operators and dnn.where, dnn.exp, ...; operands broadcast as numpy's.  Raises
        InvalidArguments, with the function's file and line, for what cannot be traced.
        """
        if not callable(function) or not operands:
            raise InvalidArguments(f"map needs a function and its operands, not {shown(function)} of {len(operands)}")
        trace(function, tuple(f"operand {i}" for i in range(1, len(operands))))
        result: Symbol = self.apply(MAP, *operands, name=name, function=function)
        return result

    def single(self, op: str, *operands: Any) -> Symbol:
        """An operator with one result, which leaves no input out."""
        if any(operand is None for operand in operands):
            raise InvalidArguments("an operand must be a Symbol, an array or a number, not None")
        result: Symbol = self.apply(op, *operands)
        return result

    def compile(
        self,
        shapes: Mapping[str, Any] | None = None,
        *,
        engine: Engine | None = None,
        fallback: str | None = None,
        precision: str = "f32",
        io: str = "file",
        keep_f32: Sequence[str] = (),
        max_error: float | None = None,
        feeds: Mapping[str, Any] | None = None,
        parameters: Any = None,
        deterministic: Literal[False, True, "batch"] = False,
        **outputs: Symbol,
    ) -> Network:
        """The network that computes these outputs, by name.

        parameters: a training step, or arrays by name, whose values parameters have, as constants: a later step does
        not change them.  Batch norm takes running statistics then, and dropout drops nothing.  The other arguments are
        those of `load_onnx`.
        """
        engine = engine_asking(engine, deterministic)
        if parameters is not None:
            self._check_own(outputs)
            graph = self._learned(parameters, [symbol.name for symbol in outputs.values()])
            own = {name: Symbol(graph, symbol.name) for name, symbol in outputs.items()}
            more: dict[str, Any] = {"precision": precision, "io": io, "keep_f32": keep_f32, "max_error": max_error}
            found: Network = graph.compile(shapes, engine=engine, fallback=fallback, feeds=feeds, **more, **own)
            return found
        allowed, limit = precision_of(precision, keep_f32, io), limit_of(max_error, feeds)
        return self._network(outputs, shapes, engine, fallback, allowed, limit)

    def _copy(self) -> "Graph":
        copy = Graph(self.name, self.seed)
        for name in ("_inputs", "_constants", "_states", "_parameters", "_written"):
            setattr(copy, name, dict(getattr(self, name)))
        copy._nodes, copy._ends = list(self._nodes), self._ends
        return copy

    def _check_own(self, outputs: Mapping[str, Any]) -> None:
        for name, symbol in outputs.items():
            if not isinstance(symbol, Symbol) or symbol.graph is not self:
                raise InvalidArguments(f"{name} must be a Symbol of this graph, not {shown(symbol)}")

    def _network(
        self,
        outputs: Mapping[str, Symbol],
        shapes: Any,
        engine: Engine,
        fallback: str | None,
        precision: Precision,
        limit: ErrorLimit | None = None,
    ) -> Network:
        model = self._model(outputs)
        return network_within(model, shapes, None, engine=engine, fallback=fallback, precision=precision, limit=limit)

    def _model(self, outputs: Mapping[str, Symbol]) -> Model:
        """What a network with these outputs is planned for.  Raises InvalidArguments."""
        self._check_own(outputs)
        if not outputs and not self._states:
            raise InvalidArguments("a network needs an output, as in graph.compile(y=y)")
        taken = {*self._inputs, *(output for node in self._nodes for output in node.outputs)} & outputs.keys()
        if taken:
            raise InvalidArguments(f"{min(taken)} is an input or inner value, call the output something else")
        ends = [
            Node("Identity", (symbol.name,), (name,), attributes={}, name="", domain="", opset=OPSET)
            for name, symbol in outputs.items()
        ]
        states = tuple(self._states.values())
        results = (*outputs, *(state.written for state in states if state.written))
        body = Body(self.name, self._inputs, results, (*self._nodes, *ends), self._constants)
        return Model(body, {"": OPSET}, states=states)

    def _own_constants(self) -> None:
        """Copy the arrays that were only held."""
        for name, array in self._constants.items():
            if array.base is not None:
                self._constants[name] = own = np.array(array)
                own.setflags(write=False)

    def _free(self, name: str) -> str:
        """The name of an inner value, or one like it where an input or a constant has that."""
        while name in self._inputs or name in self._constants:
            name += "'"
        return name

    def _operand(self, operand: Any) -> str:
        if operand is None:
            return NOTHING
        if isinstance(operand, Symbol):
            if operand.graph is not self:
                raise InvalidArguments(f"{operand} is of another graph")
            return operand.name
        try:
            array = operand.array.view() if isinstance(operand, Held) else np.array(operand)
        except Exception:  # whatever the caller's object does
            raise InvalidArguments(f"an operand must be a Symbol, an array or a number, not {shown(operand)}") from None
        if array.dtype.kind not in "fiub":
            raise InvalidArguments(f"an operand must be a Symbol, an array or a number, not {shown(operand)}")
        is_number = array.dtype.kind == "f" or isinstance(operand, int | float)
        name = self._free(f"constant {len(self._constants)}")
        if isinstance(operand, Held) and operand.name and operand.name not in self._inputs:
            if operand.name in self._constants:
                return operand.name
            name = operand.name
        self._constants[name] = rounded_f32("an operand", array) if is_number else array
        self._constants[name].setflags(write=False)
        return name
