"""The phases of a recurrent layer: for every layer and direction a product of all steps, and a phase for every step.

h of a step is a row of the output, which the next step reads from there; c is updated in place.  Odd steps walk every
thread's panels of weights_iter backwards, so that they begin with those that are still in its L2.
"""

from collections.abc import Sequence

from asmdnn.isa.dot import U8S8, Types
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View, flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.binary import plan as add_plan
from asmdnn.primitives.products.multiplier import Multiplier
from asmdnn.primitives.recurrent.bytes import SCALES, add_starts, scales_of, zero_state
from asmdnn.primitives.recurrent.description import GRUForward, LSTMForward, QuantizedRecurrent, RecurrentForward
from asmdnn.primitives.recurrent.directions import Stage, in_turn
from asmdnn.primitives.recurrent.dynamic import RoundedRows, add_numbers
from asmdnn.primitives.recurrent.formats import handed_type
from asmdnn.primitives.recurrent.layer import BIAS, Layer
from asmdnn.primitives.recurrent.padding import add_zeros
from asmdnn.primitives.recurrent.qparams import is_dynamic
from asmdnn.primitives.recurrent.rooms import Rooms
from asmdnn.primitives.recurrent.rows import BufferRows, Time, state_rows
from asmdnn.primitives.recurrent.stage import CellField, vectors_of
from asmdnn.primitives.recurrent.steps import StagePhases
from asmdnn.primitives.recurrent.workspace import regions_of, workspace_desc
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import replace
from asmdnn.types import DataType, f32, s32, u8


class Planner:
    """A plan as it comes together."""

    def __init__(self, desc: RecurrentForward, tensors: dict[str, MemoryDesc], engine: Engine, types: Types) -> None:
        self.desc, self.tensors, self.engine, self.types = desc, tensors, engine, types
        self.multiplier = Multiplier(engine, types)
        self.target = self.multiplier.target
        self.sizes = s = desc.sizes
        self.time = Time(s, desc.lengths or (s.steps,) * s.sequences)
        self.assembly, self.steps = Assembly(engine.tuning, engine.isa), StagePhases(engine.tuning)
        self.given = (*tensors,)
        self.is_dynamic, self.handed = is_dynamic(desc), handed_type(desc, types)
        if self.is_dynamic:
            add_numbers(self.assembly, tensors, self.of_gates(f32))
        elif types == U8S8:
            self.prepare_bytes()
        if types == U8S8:
            self.prepare_state()
        self.rooms = Rooms(self.assembly, self.time, regions_of(desc) if desc.is_training else {})

    def prepare_bytes(self) -> None:
        """Scales and starts, as constants and scratch that stand for tensors."""
        desc, s = self.desc, self.sizes
        assert isinstance(desc, QuantizedRecurrent) and desc.rnn_data_qparams and desc.rnn_weights_qparams
        shift = int(desc.rnn_data_qparams[1])
        scales = scales_of(desc.rnn_data_qparams, desc.rnn_weights_qparams, s.gates, s.hidden)
        self.assembly.constants[SCALES] = scales
        add_starts(self.assembly, self.tensors, self.of_gates(s32), shift, self.target.isa)

    def prepare_state(self) -> None:
        """A state of zeros that stands for a tensor."""
        desc, s = self.desc, self.sizes
        assert isinstance(desc, QuantizedRecurrent)
        if desc.src_iter is None:
            shift = 0 if self.is_dynamic else int(desc.rnn_data_qparams[1])
            state, words = zero_state(desc.weights_iter, s.sequences, s.state, shift, self.handed)
            self.assembly.constants["src_iter"] = words
            self.desc = replace(desc, src_iter=state)
            self.tensors = {**self.tensors, "src_iter": state}

    def of_gates(self, dtype: DataType) -> MemoryDesc:
        """Numbers for every gate and channel, in the order of the gates of a step: a vector of units of each, then the
        next vector."""
        s = self.sizes
        dims = (s.layers, s.directions, s.gates, s.hidden)
        return MemoryDesc(dims, dtype, f"abDc{self.target.lanes * (1 + s.gates % 2)}d")

    def plan(self, way: str) -> Plan:
        if self.types != U8S8:  # whose cells add it
            self.pack_bias()
        x, channels = self.time.layer("src_layer", self.tensors["src_layer"]), self.sizes.src
        for number in range(self.sizes.layers):
            x, channels = self.add_layer(number, x, channels), self.sizes.dst
        tensors = {name: self.tensors[name] for name in self.given}
        workspace = workspace_desc(self.desc) if self.desc.is_training else None
        if workspace is not None:
            tensors["workspace"] = workspace
        outputs = tuple(name for name in tensors if name.startswith("dst") or name == "workspace")
        self.assembly.phases = list(flushing(self.assembly.phases))
        used = {view.buffer for phase in self.assembly.phases for view in phase.arguments}
        self.assembly.scratch = {name: size for name, size in self.assembly.scratch.items() if name in used}
        name = self.multiplier.implementation(way, self.assembly.phases)
        return without_needless_barriers(self.assembly.plan(name, tensors, outputs))

    def pack_bias(self) -> None:
        """The bias in the order of the gates of a step."""
        bias, packed = self.tensors.get("bias"), self.of_gates(f32)
        if bias is None:
            return
        buffer = self.assembly.room(BIAS, packed.size_bytes)
        add_reorder(self.assembly, Reordering("bias", bias.submemory(packed.dims, (0, 0, 0, 0)), buffer, packed))

    def add_layer(self, number: int, x: BufferRows, channels: int) -> BufferRows:
        """A layer in all directions; returns where its output is."""
        s, desc = self.sizes, self.desc
        if number == s.layers - 1:
            out = self.time.layer("dst_layer", self.tensors["dst_layer"])
        else:
            known = self.kept_as_handed("layer", number)
            out = known or self.rooms.all_steps(f"layer {number % 2}", s.dst, self.handed)
        layers, x_rounded = [], None
        if self.is_dynamic:
            x_rounded = self.rounded("x", "weights_layer", s.rows, channels, number * s.directions, s.directions)
            self.assembly.add([x_rounded.phase(x.view(0), x.row_bytes, self.assembly.tuning)])
            x = self.time.dense(x_rounded.rows.buffer, channels, dtype=u8)
        for direction in range(s.directions):
            h = out.element(direction * s.out)
            if desc.direction == "bidirectional_sum":
                name = f"direction {direction}"
                known = self.kept_as_handed("direction", number, direction)
                h = known or self.rooms.all_steps(name, s.out, self.types.src)
            layers.append(self.layer_of(number, direction, x, channels, h, x_rounded))
        together = [layers] if self.engine.threads > 1 and self.time.is_even else [[layer] for layer in layers]
        for some in together:
            self.add_directions(some)
        if desc.direction == "bidirectional_sum":
            for direction, layer in enumerate(layers):
                self.keep(layer.h, "direction", number, direction)
            self.add_sum([layer.h for layer in layers], out)
        if number < s.layers - 1:
            self.keep(out, "layer", number)
        return out

    def rounded(self, name: str, weights: str, count: int, elements: int, first: int, groups: int) -> RoundedRows:
        """Rows as bytes, for the gates of some layers and directions from the first on, in scratch."""
        columns = self.of_gates(f32).size_bytes // f32.size_bytes // (self.sizes.layers * self.sizes.directions)
        found = RoundedRows(name, weights, self.target.isa, count, elements, (first * columns, groups * columns))
        for buffer, size in found.scratch.items():
            self.assembly.scratch[buffer] = max(size, self.assembly.scratch.get(buffer, 0))
        return found

    def layer_of(
        self, number: int, direction: int, x: BufferRows, channels: int, h: BufferRows, x_rounded: RoundedRows | None
    ) -> Layer:
        """A layer in one direction."""
        desc, s, h_rounded = self.desc, self.sizes, None
        if x_rounded:
            at = number * s.directions + direction
            h_rounded = self.rounded(f"h {direction}", "weights_iter", s.sequences, s.state, at, 1)
        backwards = direction == 1 or desc.direction == "unidirectional_right2left"
        c = self.place_of_c(number, direction) if isinstance(desc, LSTMForward) else h
        fields = self.fields(number, direction)
        return Layer(
            desc=desc,
            tensors=self.tensors,
            time=self.time,
            target=self.target,
            types=self.types,
            number=number,
            direction=direction,
            backwards=backwards,
            x=x,
            channels=channels,
            h=h,
            c=c,
            fields=fields,
            x_rounded=x_rounded,
            h_rounded=h_rounded,
            amx_level=self.multiplier.amx.isa if self.multiplier.amx else None,
        )

    def add_directions(self, layers: Sequence[Layer]) -> None:
        """A layer in one direction, or in both at the same time, with half as many barriers.  One thread alone needs
        none, and has the weights of one direction in its caches if it takes them one after the other."""
        for layer in layers:
            gates = layer.gates.rows
            self.assembly.scratch[gates.buffer] = self.sizes.rows * gates.row_bytes
            self.multiplier.add(self.assembly, layer.product())
        stages = [self.stages_of(layer) for layer in layers]
        one_by_one = len(stages) == 1 or stages[0][-1][1].alone
        self.assembly.add([phase for x in stages for _, phase in x] if one_by_one else list(in_turn(*stages)))
        for layer in layers:
            kept = self.kept_beside(layer.number, layer.direction)
            for rows, columns in ((layer.h, self.sizes.out), *kept):
                add_zeros(self.assembly, self.time, rows, columns)
            self.keep_final(layer, "dst_iter", layer.h)
            self.keep_final(layer, "dst_iter_c", layer.c)

    def stages_of(self, layer: Layer) -> list[Stage]:
        """The phases of all steps."""
        stages = {starts: layer.stages(starts) for starts in (True, False)}
        found: list[Stage] = []
        for i, turn in enumerate(self.time.turns(layer.backwards)):
            if layer.h_rounded:
                h = layer.before(turn.before is None)
                found.append((turn, layer.h_rounded.phase(h.view(turn.before or 0), h.row_bytes, self.steps.tuning)))
            found += [
                (turn, self.steps.phase(placed.stage, turn, placed.views(turn), backwards=i % 2 == 1))
                for placed in stages[turn.before is None]
            ]
        return found

    def place_of_c(self, number: int, direction: int) -> BufferRows:
        """c is updated in place, in the final state if there is one layer and direction; in training it is kept."""
        s, final = self.sizes, self.tensors.get("dst_iter_c")
        kept = self.kept("c", number, direction)
        if kept:
            return kept
        if self.time.is_even and final is not None and s.layers * s.directions == 1:
            return state_rows("dst_iter_c", final, number, direction)
        return self.of_step(f"c {direction}", s.hidden)

    def fields(self, number: int, direction: int) -> dict[str, CellField]:
        """What cells leave to the next stage of the step, and to the backward pass."""
        types: dict[str, DataType] = {}
        if isinstance(self.desc, GRUForward):
            types = {"update": f32, "reset": self.types.src}
        elif isinstance(self.desc, LSTMForward) and self.desc.weights_projection is not None:
            types = {"unprojected": self.types.src}
        lanes, units = self.target.lanes, self.sizes.hidden
        rows = {
            name: self.kept(name, number, direction) or self.of_step(f"{name} {direction}", units, dtype)
            for name, dtype in types.items()
        }
        found = {name: vectors_of(x, lanes) for name, x in rows.items()}
        gates = self.kept("gates", number, direction)
        return found if gates is None else {**found, "workspace": vectors_of(gates, lanes, units)}

    def kept(self, name: str, number: int, direction: int = 0) -> BufferRows | None:
        """The rows of a region of the workspace; None if it has none of that name."""
        return self.rooms.kept(name, number, direction) if name in self.rooms.regions else None

    def kept_as_handed(self, name: str, number: int, direction: int = 0) -> BufferRows | None:
        """The same of what steps and layers hand on, where that is of the workspace's type."""
        return self.kept(name, number, direction) if self.handed == f32 else None

    def keep(self, rows: BufferRows, name: str, number: int, direction: int = 0) -> None:
        """Copy what is handed on into the workspace, unless it is there, or not kept."""
        kept = self.kept(name, number, direction)
        if kept is None or rows == kept:
            return
        taken, columns = (0, self.sizes.rows), self.rooms.regions[name].columns
        src, dst = (x.desc(0, taken, columns) for x in (rows, kept))
        add_reorder(self.assembly, Reordering(rows.buffer, src, kept.buffer, dst))

    def kept_beside(self, number: int, direction: int) -> list[tuple[BufferRows, int]]:
        """The rows and columns of what the workspace keeps of a layer and direction beside its output."""
        found = [(self.kept(name, number, direction), name) for name in ("gates", "c", "unprojected")]
        return [(rows, self.rooms.regions[name].columns) for rows, name in found if rows]

    def of_step(self, name: str, channels: int, dtype: DataType = f32) -> BufferRows:
        """Scratch that every step overwrites; where each has its own rows, so has this layer and direction."""
        name = name if self.time.is_even else f"{name} {len(self.assembly.scratch)}"
        return self.rooms.one_step(name, channels, dtype)

    def keep_final(self, layer: Layer, name: str, rows: BufferRows) -> None:
        """Copy the state after the last step of every sequence, unless it is there."""
        final = self.tensors.get(name)
        if final is None or rows.buffer == name:
            return
        place = layer.state(name)
        for step, runs in self.time.ends(layer.backwards):
            for run in runs:
                src, dst = (x.desc(step, run, final.dims[3]) for x in (rows, place))
                add_reorder(self.assembly, Reordering(rows.buffer, src, name, dst))

    def add_sum(self, outs: Sequence[BufferRows], out: BufferRows) -> None:
        """The sum of both directions; of steps after a sequence's end that of zeros."""
        dims = self.tensors["dst_layer"].dims
        dense = MemoryDesc(dims, self.types.src, LETTERS[: len(dims)])
        is_last = out.buffer == "dst_layer"
        dst = self.tensors["dst_layer"] if is_last else dense
        answer = add_plan(BinaryForward("add", dense, dense, dst), NO_ATTR, self.engine)
        assert isinstance(answer, Plan)
        places = {
            "src0": outs[0].view(0),
            "src1": outs[1].view(0),
            "dst": View("dst_layer") if is_last else out.view(0),
        }
        self.assembly.add_plan(answer, places)
