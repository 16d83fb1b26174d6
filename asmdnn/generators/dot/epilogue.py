"""The end of a tile, after the sums are accumulated: post-ops, then the stores.

Tiles of convolutions and of matrix products share it: in a convolution a row is a pixel, a column a channel.
Streaming stores have no fence here: lines of dst are filled by several tiles.  The executor has one, when a thread is
through a phase."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

from asmdnn.generators.dot.epilogue_shape import ALL_F32, EpilogueTypes
from asmdnn.generators.dot.held import EpilogueTile, EpilogueTurn, most_alive, turns_of, waits
from asmdnn.generators.functions.chain import compose, operands_of
from asmdnn.generators.functions.code import apply_program, apply_to_each
from asmdnn.generators.functions.pointers import OperandPointers
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp, is_of_integers
from asmdnn.generators.functions.program import Program, Step
from asmdnn.generators.functions.typed_program import of_lanes, without_relu
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.element import LANE_BYTES
from asmdnn.isa.elements import element_of
from asmdnn.isa.packing import packing_of
from asmdnn.isa.vector import Broadcast, Lanes, Vector
from asmdnn.types import f32

Part = tuple[Lanes, Lanes]  # of a vector, those that are stored, and those that are real
NO_TURN = EpilogueTurn(1, {}, {}, ())
SPARE = 2  # registers that rounding, and a turn of one row, may overwrite


class TileEpilogue:
    """The code for one accumulator after the other; `spare` are two registers to overwrite.

    homes: where the pointers to operands lie, by argument, if not in the frame.  types: of what is stored and read.
    tile: registers of sums by row and vector, where `finish` takes them in the order of held.py; they are free after.
    touching: whether the vectors of a row of the tile touch in dst, so that two may be rounded and stored at once.
    streams: whole vectors of memory go past the caches.
    """

    def __init__(
        self,
        v: Vector,
        chain: tuple[PostOp, ...],
        homes: Mapping[int, Pointer] | None = None,
        types: EpilogueTypes = ALL_F32,
        tile: Sequence[Sequence[Register]] = (),
        touching: bool = False,
    ) -> None:
        self.tile, self.turns = tile, dict[tuple[int, int], EpilogueTurn]()
        self.waiting: list[tuple[Register, int, Pointer]] = []
        self.v, self.chain, self.types, self.slots = v, chain, types, Slots(v)
        self.saturates = types.packs_bytes and packing_of(v).saturates
        self.program = program_of(chain, types, self.saturates)
        self.pairs = touching and bool(tile) and rounds_pairs(types, self.program)
        words = [x.argument for x in operands_of(chain) if x is not OLD_DST]
        self.homes = homes or {argument: mem(v.asm.frame, 8 * argument, size=8) for argument in words}
        self.spare: list[Register] = v.registers.take("post-ops", SPARE)
        self.streams = False

    @property
    def stores_vectors(self) -> bool:
        """Whether results fill whole vectors of memory, one or two each."""
        return self.pairs or self.types.dst.size_bytes == LANE_BYTES

    @property
    def key(self) -> Hashable:
        """Everything that the code of an accumulator depends on, except its place."""
        slots = tuple(self.slots.free), tuple(self.slots.numbers)
        return self.chain, self.types, tuple(self.homes.items()), slots, self.streams, self.pairs

    def emit(self, dst: Pointer | Register, streaming: bool, body: Callable[[], None]) -> None:
        """`body` with streaming stores where that is asked for and dst is a multiple of a vector, else with plain ones.
        dst: what the stores of `body` are whole vectors away from, or the word that has it."""
        if not streaming:
            body()
            return
        asm = self.v.asm
        done, bits = asm.new_label("stored"), asm.gp.take("bytes past a vector")
        with if_aligned(asm, dst, self.v.bytes, bits):
            asm.gp.free(bits)
            self.streams = True
            body()
            self.streams = False
            asm.JMP(done)
        body()
        asm.bind(done)

    def finish(self, x: Register, row: int, vector: int, at: Pointer, stored: Lanes, real: Lanes) -> None:
        """Apply post-ops to the sums x and store them as dst's vector of a row, at `at`; x may be overwritten.

        Of the `stored` lanes those that are not `real` are padding, stored as zero whatever the source holds: 0 * inf
        would be NaN.  With a `tile` rows wait for those that their turn has beside them.
        """
        self.widen(x)
        if not self.program:
            self.put(x, (row, vector), at, (stored, real))
            return
        # Registers that a tail leaves free.  The last are taken first, as low numbers have shorter encodings.
        others = self.v.registers.take("post-ops", self.v.registers.available)
        self.waiting.append((x, row, at))
        turn = self.turn(self.waiting[0][1], vector, others)
        if len(self.waiting) == turn.rows:
            self.take_turn(turn, vector, (stored, real))
        self.v.registers.free(*others)

    def turn(self, row: int, vector: int, others: Sequence[Register]) -> EpilogueTurn:
        """Of the rows that begin with this one."""
        if not self.tile:
            return EpilogueTurn(1, {}, {}, tuple(others))
        if not self.turns:
            assert self.program
            spare = len(self.spare)
            tile = EpilogueTile(self.tile, others, spare, 0 if self.types.rounds else spare, self.pairs)
            self.turns = turns_of(self.program, operands_of(self.chain), tile)
        return self.turns[row, vector]

    def take_turn(self, turn: EpilogueTurn, vector: int, part: Part) -> None:
        """Post-ops and stores of the rows that waited."""
        assert self.program
        xs, rows, at = (list(each) for each in zip(*self.waiting, strict=True))
        self.waiting.clear()
        held = (turn.held, turn.loaded)
        with self.sources(rows, vector, at, part, turn) as sources:
            if turn.rows == 1:
                own = [source for (source,) in sources]
                spare = [*reversed(turn.spare), *self.spare]
                apply_program(self.program, self.v, xs[0], own, spare, slots=self.slots, held=held)
            else:
                free = () if self.types.rounds else self.spare  # overwritten by rounding
                registers = [*reversed(turn.spare), *free, *xs]
                (xs,) = apply_to_each(self.program, self.v, [xs, *sources], registers, slots=self.slots, held=held)
        while self.saturates and part == (self.v, self.v) and len(xs) > 1:
            packing_of(self.v).store_bytes_of_both(at[:2], xs[:2], self.types.stored.signed)
            del xs[:2], at[:2], rows[:2]
        for x, row, place in zip(xs, rows, at, strict=True):
            self.put(x, (row, vector), place, part)

    def finish_rows(self, xs: Sequence[Register], rows: Sequence[int], at: Sequence[Pointer], part: Part) -> None:
        """As `finish`, for vector 0 of several rows: constants and operands that rows share are loaded once."""
        for x in xs:
            self.widen(x)
        if self.program:
            others = self.v.registers.take("post-ops", self.v.registers.available)
            self.waiting += zip(xs, rows, at, strict=True)
            self.take_turn(EpilogueTurn(len(rows), {}, {}, tuple(others)), 0, part)
            self.v.registers.free(*others)
            return
        for x, place in zip(xs, at, strict=True):
            self.store(x, place, *part)

    def widen(self, x: Register) -> None:
        """Sums as f32, each rounded to nearest even."""
        element_of(self.types.sums).widen(self.v, x, x)

    def put(self, x: Register, place: tuple[int, int], at: Pointer, part: Part) -> None:
        """Store the results x of a place (row, vector).  Of pairs the first ones stay in their register until the
        others are there: halves of a line that are written apart are two misses where rows share the sets of L1."""
        (row, vector), (stored, real) = place, part
        if self.pairs and waits(vector, len(self.tile[row])):
            self.clear_padding(x, part)
            return
        if self.pairs and vector % 2:
            first, half = self.tile[row][vector - 1], self.types.stored.size_bytes * self.v.lanes
            if stored is self.v:
                self.clear_padding(x, part)
                self.types.stored.narrow_both(self.v, first, first, x)
                store = self.v.stream if self.streams else self.v.store
                store(at.shifted(-half).sized(self.v.bytes), first)
                return
            self.store(first, at.shifted(-half).sized(half), self.v, self.v)
        self.store(x, at, stored, real)

    def clear_padding(self, x: Register, part: Part) -> None:
        stored, real = part
        if stored is not real:
            real.clear_rest(x)

    def store(self, x: Register, at: Pointer, stored: Lanes, real: Lanes) -> None:
        """Store x, which has dst's type or is rounded to it; zeros in padding."""
        self.clear_padding(x, (stored, real))
        if self.streams and stored is self.v and not self.types.rounds:
            self.v.stream(at, x)
        elif self.types.rounds:
            self.types.stored.store(self.v, at, x, stored, self.spare)
        else:
            self.types.stored.lanes(self.v, stored).store_last(at, x)

    @contextmanager
    def sources(
        self, rows: Sequence[int], vector: int, at: Sequence[Pointer], part: Part, turn: EpilogueTurn = NO_TURN
    ) -> Iterator[Sequence[Sequence[Source]]]:
        """Where a vector of some rows finds each operand, and what dst held, which lies `at`; one source for all rows
        that share it.  Pointers are loaded here, or when needed, and given back."""
        pointers, (stored, real) = OperandPointers(self.v.asm, self.homes_of(turn)), part

        def source(operand: Operand, row: int) -> Source:
            place = row * operand.row_bytes + vector * operand.vector_bytes
            element = element_of(self.types.of(operand))
            size = element.size_bytes * (1 if operand.element else self.v.lanes)
            lanes = element.repeated(self.v) if operand.element else element.lanes(self.v, real)
            if operand.row_bytes and lanes is None:
                lanes = Broadcast(self.v)  # each row has its own
            return Source(lambda: mem(pointers.register(operand.argument), place, size=size), lanes)

        def of_rows(operand: Operand | None) -> Sequence[Source]:
            if operand is OLD_DST:
                lanes = self.types.stored.lanes(self.v, stored)
                return [Source(lambda place=place: place, lanes) for place in at]  # type: ignore[misc]
            if operand.row_bytes:
                return [source(operand, row) for row in rows]
            return [source(operand, rows[0])] * len(rows)

        yield [of_rows(operand) for operand in operands_of(self.chain)]
        pointers.release()

    def homes_of(self, turn: EpilogueTurn) -> Mapping[int, Pointer]:
        """Of the pointers that a turn reads through."""
        if not turn.held or not self.program:
            return self.homes
        held = {self.program.steps[i] for i in turn.held.keys() - turn.loaded.keys()}
        operands = enumerate(operands_of(self.chain), 1)
        read = {x.argument for i, x in operands if x is not OLD_DST and Step("input", (), i) not in held}
        return {argument: home for argument, home in self.homes.items() if argument in read}

    def release(self) -> None:
        """Give the registers back."""
        self.v.registers.free(*self.spare)


def rounds_pairs(types: EpilogueTypes, program: Program | None) -> bool:
    """Whether an instruction rounds two vectors to dst, and what is computed before needs no registers that the first
    ones would have left."""
    return types.rounds and types.stored.narrows_pairs and (program is None or most_alive(program) < SPARE)


@lru_cache
def program_of(chain: tuple[PostOp, ...], types: EpilogueTypes, saturated: bool) -> Program | None:
    """The program from sums and operands in memory to lanes of dst's type, or f32 if the store rounds; None: empty.

    Sums are f32, or the s32 that integers are added to.  saturated: whether the store raises bytes to the least.
    """
    if is_of_integers(chain):
        return compose(chain)
    operands = [types.of(operand).name for operand in operands_of(chain)]
    result = f32.name if types.rounds else types.dst.name
    if {result, *operands} == {f32.name}:
        program = compose(chain) if chain else None
    else:
        program = of_lanes(compose(chain), (f32.name, *operands), (result,), saturated=saturated)
    return without_relu(program) if program and types.raises_to_0 else program
