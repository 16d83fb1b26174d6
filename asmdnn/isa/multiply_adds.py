"""Multiply-adds as instructions: what one does, and what measures of a CPU's peak take it for.

A peak is what a core reaches with one of them alone: that of FMA, in f32, or that of the dot product that is multiplied
instead (dot.py, nibbles.py).
"""

from typing import Final

from asmdnn.isa.tiles import TILE_COLUMNS, TILE_GROUPS, TILE_ROWS

FMA: Final = "FMA"  # of f32; all arithmetic that is none of those below is compared with it

# By lanes of 4 bytes, with the addition of a lane's sum, which may be an instruction of its own.  VPMADDUBSW's words go
# on to a VPMADDWD, which counts their additions.
OPS_OF_LANE: Final = {
    "VDPBF16PS": 4, "VPDPBUSD": 8, "VPDPBUSD_VEX": 8, "VPDPBUSDS": 8, "VPDPWSSD": 4, "VPDPWSSD_VEX": 4, "VPDPWSSDS": 4,
    "VPMADDWD": 4, "VPMADDUBSW": 4, "VPMULLD": 2, "VFMADD231PH": 4,
}  # fmt: skip
ADDED_AFTER: Final = ("VPMADDWD", "VPMULLD")  # to sums of 32 bits, by VPADDD
NOT_ADDED: Final = ("VPMADDUBSW",)
_OPS_OF_TILE_GROUP: Final = {"TDPBF16PS": 4, "TDPBUSD": 8, "TDPBSSD": 8, "TDPBSUD": 8, "TDPBUUD": 8}
OPS_OF_TILE: Final = {
    name: ops * TILE_ROWS * TILE_GROUPS * TILE_COLUMNS for name, ops in _OPS_OF_TILE_GROUP.items()
}  # of a whole one


def peak_of(mnemonic: str) -> str:
    """The multiply-add whose peak an instruction's operations are compared with."""
    return mnemonic if mnemonic in OPS_OF_LANE or mnemonic in OPS_OF_TILE else FMA
