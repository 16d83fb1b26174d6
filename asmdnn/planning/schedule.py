"""What the proof of a plan reads of it."""

from collections.abc import Mapping
from typing import Protocol

from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64, Phase


class Schedule(Protocol):
    """Phases and the buffers that they work on, as plan.Plan describes them."""

    @property
    def phases(self) -> tuple[Phase, ...]: ...
    @property
    def tensors(self) -> Mapping[str, MemoryDesc]: ...
    @property
    def constants(self) -> Mapping[str, Int64]: ...
    @property
    def scratch_bytes(self) -> Mapping[str, int]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def in_place(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def per_part(self) -> tuple[str, ...]: ...
    def buffer_bytes(self, name: str) -> int: ...
