"""The tables of an exported plan: words that runtime/asmdnn_runtime.c reads as its structures, field by field.

A context's words are written as the executor reads them (generators/context.py), with the addresses of records,
kernels, weights and constants.  What depends on the number of threads is apart: shares, and where scratch lies.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.export.image import MOST_BYTES, NOWHERE, WORD, ObjectImage, Reference
from asmdnn.export.interface import BITS, ELEMENTS, WORDLESS, CInterface
from asmdnn.generators.context import CONTEXT_WORDS, PHASE_WORDS, Context, PhaseWord
from asmdnn.isa import cpu
from asmdnn.isa.levels import ANY_CPU, isa_of
from asmdnn.planning.plan import Plan
from asmdnn.runtime.buffers import slots_of
from asmdnn.runtime.context import FLUSHING_MXCSR, USUAL_MXCSR, PhaseTable, PhaseTables
from asmdnn.runtime.kernels import executor_spec, kernel_cache

FORMAT: Final = 1  # that of asmdnn_runtime.c
UNITS: Final = {"bool": 1, **{t.name: t.size_bytes for t in WORDLESS}}  # bytes of others than sNN, uNN, fNN
Row = Sequence[int | Reference]


class PlanTables:
    """Puts a plan for up to `threads` threads into an image."""

    def __init__(self, image: ObjectImage, plan: Plan, threads: int) -> None:
        self.image, self.plan, self.threads = image, plan, threads
        self.parts = plan.parts(threads)
        cache = kernel_cache()
        fetched = [cache.fetch(spec) for spec in plan.specs]  # several are one, where numbers make the difference
        places = {code: image.function(name, code) for code, name in {one.code: one.name for one in fetched}.items()}
        self.kernels = [places[one.code] for one in fetched]
        executor = executor_spec(plan)
        self.executor = image.function(executor.name, cache.fetch(executor).code)
        self._tables = dict[int, Reference]()

    def context(self, data: Mapping[str, Reference]) -> list[int | Reference]:
        """The words, with zeros where tensors and scratch go; data: where constants and weights lie."""
        words: list[int | Reference] = [0] * CONTEXT_WORDS
        words[Context.PHASES] = len(self.plan.phases)
        for table in PhaseTables(self.plan, 1, range(len(self.kernels))).phases:
            words += [*self.phase_words(table), *[0] * self.plan.arguments]
        for name, slots in slots_of(self.plan).items():
            for slot, offset in slots if name in data else ():
                words[slot] = Reference(data[name].section, data[name].offset + offset)
        return words

    def phase_words(self, table: PhaseTable) -> list[int | Reference]:
        phase, words = table.phase, list[int | Reference]([0] * PHASE_WORDS)
        words[PhaseWord.RECORDS] = self.image.array(phase.records)
        words[PhaseWord.KERNELS] = self.table_of(table)
        words[PhaseWord.BARRIER], words[PhaseWord.ARGUMENTS] = int(table.has_barrier), len(phase.arguments)
        words[PhaseWord.MXCSR] = FLUSHING_MXCSR if phase.flushes else USUAL_MXCSR
        if table.starts is not None and table.part_bytes is not None:
            words[PhaseWord.STARTS] = self.image.array(table.starts)
            words[PhaseWord.PART_BYTES] = self.image.array(table.part_bytes)
        return words

    def table_of(self, table: PhaseTable) -> Reference:
        """The addresses of a phase's kernels, once for phases that share them."""
        key = id(table.phase.kernels)
        if key not in self._tables:
            self._tables[key] = self.image.words([self.kernels[number] for number in table.kernels.tolist()])
        return self._tables[key]

    def shares(self) -> tuple[Reference, Reference]:
        """All shares, and int64[parts, phases]: where those of a phase are, for each number of parts."""
        found, places, ends = list[np.ndarray](), list[list[int]](), 0
        for parts in range(1, self.parts + 1):
            known, row = dict[int, int](), list[int]()
            for table in PhaseTables(self.plan, parts, range(len(self.kernels))).phases:
                if id(table.shares) not in known:
                    known[id(table.shares)] = ends
                    found.append(table.shares)
                    ends += table.shares.size
                row.append(known[id(table.shares)])
            places.append(row)
        every = np.concatenate([shares.ravel() for shares in found])
        return self.image.array(every), self.image.array(np.array(places, np.int64))

    def scratch(self) -> tuple[Reference, Reference]:
        """int64[parts, scratches]: where each lies in the scratchpad; int64[parts]: its bytes."""
        counts = range(1, self.parts + 1)
        offsets = [list(self.plan.scratch_offsets(parts).values()) for parts in counts]
        sizes = [self.plan.scratchpad_bytes(parts) for parts in counts]
        return self.image.array(np.array(offsets, np.int64)), self.image.array(np.array(sizes, np.int64))

    def places(self, buffers: Sequence[str]) -> tuple[Reference, Reference]:
        """Words of the context that point into buffers, and from where to where those of each are."""
        slots = slots_of(self.plan)
        rows = [slots.get(name, []) for name in buffers]
        ends = [0, *accumulate(map(len, rows))]
        flat = [number for row in rows for place in row for number in place]
        return self.image.array(np.array(flat, np.int64)), self.image.array(np.array(ends, np.int64))

    def features(self) -> tuple[Reference, int]:
        """What the CPU must have for the kernels: a row for each feature, sorted by the leaf of CPUID."""
        levels = {spec.isa for spec in self.plan.specs} - {ANY_CPU}
        names = frozenset[str]().union(*(isa_of(level).features for level in levels))
        rows = [(*bit.leaf, bit.register, bit.bit, bit.state, bit.name) for bit in cpu.feature_bits(names)]
        return self.rows([[self.image.text(name), *numbers] for *numbers, name in sorted(rows)])

    def rows(self, rows: Sequence[Row]) -> tuple[Reference, int]:
        """A table of equal rows, and their number."""
        return self.image.words([word for row in rows for word in row]), len(rows)


def put_network(
    tables: PlanTables, name: str, interface: CInterface, data: Mapping[str, Reference]
) -> tuple[Reference, int]:
    """The structure that a program names, and its words.  data: where constants and weights lie."""
    image, plan = tables.image, tables.plan
    context = tables.context(data)
    shares, scratch = tables.shares(), tables.scratch()
    features, feature_count = tables.features()
    tensors, tensor_count = tables.rows([
        [
            image.text(x.name), number_of(x.element), x.elements, x.size_bytes, unit_of(x.element), x.is_output,
            x.in_place,
        ]
        for x in interface.tensors
    ])  # fmt: skip
    buffers, buffer_count = tables.rows(
        [
            [image.text(x.name), x.tensor, x.room, x.elements, x.least, x.limit, x.ignored, x.is_made]
            for x in interface.buffers.values()
        ]
    )
    results, result_count = tables.rows(
        [[x.output, x.buffer, x.input, NOWHERE if x.data is None else image.array(x.data)] for x in interface.results]
    )
    places = tables.places([*interface.buffers, *plan.scratch_bytes])
    if image.size_bytes > MOST_BYTES:
        raise InvalidArguments(
            f"{name} takes {image.size_bytes} bytes, an object may have {MOST_BYTES}: save it with save(), for Python"
        )
    words: list[int | Reference] = [
        FORMAT, image.text(name), tables.executor, image.words(context), len(context), tables.threads, tables.parts,
        len(plan.phases), CONTEXT_WORDS + PhaseWord.SHARES, PHASE_WORDS + plan.arguments, *shares,
        len(plan.scratch_bytes), *scratch, interface.rooms_bytes,
        feature_count, tensor_count, buffer_count, result_count, features, tensors, buffers, results, *places,
    ]  # fmt: skip
    return image.words(words), WORD * len(words)


def number_of(element: str) -> int:
    """In the runtime's enumeration."""
    return list(ELEMENTS).index("other" if element in BITS else element)


def unit_of(element: str) -> int:
    """Bytes of an element, of which its address is a multiple."""
    return UNITS[element] if element in UNITS else int(element[1:]) // 8
