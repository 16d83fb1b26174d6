"""Rows that a plan keeps for itself: in scratch, or in the workspace, which the backward pass reads."""

from collections.abc import Mapping

from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.recurrent.rows import BufferRows, Time, dense_rows
from asmdnn.primitives.recurrent.workspace import Region
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32


@dataclass(frozen=True, eq=False)
class Rooms:
    """assembly: gets the scratch.  regions: of the workspace, by name."""

    assembly: Assembly
    time: Time
    regions: Mapping[str, Region]

    def all_steps(self, name: str, columns: int, dtype: DataType = f32) -> BufferRows:
        """Scratch with rows of every step."""
        rows = self.time.dense(name, columns, dtype=dtype)
        self.assembly.scratch[name] = self.time.sizes.rows * rows.row_bytes
        return rows

    def one_step(self, name: str, columns: int, dtype: DataType = f32) -> BufferRows:
        """Scratch that every step overwrites.  Where sequences end at different ones, each has its own rows: what a
        sequence has not written stays so."""
        if not self.time.is_even:
            return self.all_steps(name, columns, dtype)
        rows = dense_rows(name, columns, dtype)
        self.assembly.scratch[name] = self.time.sizes.sequences * rows.row_bytes
        return rows

    def kept(self, name: str, number: int, direction: int = 0) -> BufferRows:
        """A region of the workspace."""
        region = self.regions[name]
        return self.time.dense("workspace", region.columns, region.at(number, direction))
