"""Expected cycles of register blocks that multiply and accumulate.

A step of depth of a block of m rows x n vectors takes the largest of three: what a dot product keeps ports busy, which
are m * n multiplies on two ports if it is one instruction, m + n loads on two ports, and the latency of a multiply that
waits for the one before.  Added to this is the traffic of the
weights, which stream from L2 for every tile: a wide block costs less.  Both ISA levels have these port counts.
"""

from asmdnn.isa.dot import Dot
from asmdnn.isa.dot_native import F32Dot
from asmdnn.planning.tuning import PhaseTuning


def step_cycles(
    rows: int,
    vectors: int,
    lanes: int,
    tuning: PhaseTuning,
    dot: type[Dot] = F32Dot,
    load_share: float = 1.0,
) -> float:
    """Cycles for one step of depth (a group of input channels, a row of weights) of a block.

    load_share: of half a cycle that a load takes, where multiplies that take longer count as half a cycle.
    """
    stream = tuning.weights_stream_cycles * vectors * lanes / 8
    return max(dot.busy_cycles(rows, vectors), load_share * (rows + vectors) / 2, tuning.latency_cycles) + stream
