"""Phases of the gradients of cells: element-wise kernels of several results on the rows of a step."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from asmdnn.generators.functions.chain import compose_all
from asmdnn.generators.recurrent.cells import Place
from asmdnn.generators.recurrent.gradients import (
    CellGradient,
    GradientForm,
    GradientSpec,
    TypedGradientSpec,
    gradient_form,
    gradient_spec,
)
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cuts import balanced, ranges_of
from asmdnn.planning.phase import Phase, View, views
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import level_that_rounds
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

VECTORS = 16  # elements: whole vectors at every level


class PlacedRows(NamedTuple):
    """Where a part of rows starts, their distance, and the type of their elements."""

    view: View
    row_bytes: int
    dtype: DataType = f32


@dataclass(frozen=True, slots=True)
class Map:
    """A gradient for `count` rows of `units`.  row_bytes, types: of what it reads and of its results, in their
    order."""

    isa: str
    cell: CellGradient
    count: int
    units: int
    row_bytes: tuple[int, ...]
    types: tuple[DataType, ...]

    def offset(self, place: int, row: int, unit: int) -> int:
        """Where a unit of a row begins in what is read or made, in bytes."""
        return row * self.row_bytes[place] + unit * self.types[place].size_bytes


class Maps:
    """Phases of maps; those that differ only in where they read and write share their records."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.tuning = engine, engine.tuning
        self.known: dict[Map, Phase] = {}

    def phase(self, cell: CellGradient, size: tuple[int, int], places: Mapping[Place, PlacedRows]) -> Phase:
        """size: rows and units.  places: of everything that is read or made."""
        form = gradient_form(cell)
        order = (*form.reads, *form.results)
        found = [places[place] for place in order]
        types = tuple(place.dtype for place in found)
        key = Map(
            level_that_rounds(types, self.engine).isa, cell, *size, tuple(place.row_bytes for place in found), types
        )
        if key not in self.known:
            self.known[key] = template(key, form, self.tuning)
        return self.known[key].on({name_of(i): place.view for i, place in enumerate(found)})


def name_of(number: int) -> str:
    """The buffer of a place in a template."""
    return f"place {number}"


def template(of: Map, form: GradientForm, tuning: Tuning) -> Phase:
    """The records of a map, whose arguments are src, which is read first, the results, and what else is read."""
    order = form.arguments
    types = [dtype.name for dtype in of.types]
    numbers: dict[GradientSpec | TypedGradientSpec, int] = {}
    records, cycles, row = [], [], 0
    most = tuning.recurrent.gradient_elements
    for count in balanced(of.count, max(1, most // of.units)):
        for begin, end in ranges_of(of.units, max(1, most // VECTORS), VECTORS):
            spec = gradient_spec(of.isa, of.cell, count, end - begin, of.row_bytes, types)
            offsets = [of.offset(place, row, begin) for place in order]
            records.append([numbers.setdefault(spec, len(numbers)), *offsets])
            cycles.append(cycles_of(spec, tuning))
        row += count
    arguments = views([name_of(place) for place in order])
    table = np.array(records, np.int64), np.array(cycles, np.int32)
    return Phase(tuple(numbers), arguments, *table, alone=sum(cycles) < tuning.recurrent.alone_cycles)


def cycles_of(spec: GradientSpec | TypedGradientSpec, tuning: Tuning) -> int:
    """What a call is expected to take."""
    size = compose_all(tuple(result.chain for result in spec.results)).size
    vectors = -(-spec.elements // lanes_of(spec.isa))
    return tuning.phases.call_cycles + spec.rows * vectors * size // tuning.recurrent.gradient_rate
