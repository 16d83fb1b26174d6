"""`f.trace(x, y, 5)`: an emulated call step by step, and a page that plays it."""

from asmdnn.asm.trace.record import Trace, record
from asmdnn.asm.trace.step import TraceStep

__all__ = ["Trace", "TraceStep", "record"]
