"""Recurrent layers of torch.nn as calls to measure and compare with."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn import environment
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.recurrent.data import ArgumentSizes, LayerWords
from asmdnn.bench.values import joined
from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented
from asmdnn.isa.vectors import f32_level

CELLS = {"VANILLA_RNN": "rnn", "VANILLA_LSTM": "lstm", "LBR_GRU": "lbr_gru"}
MODULES = {"rnn": "RNN", "lstm": "LSTM", "lbr_gru": "GRU"}
CAPABILITIES = {"avx2": "avx2", "avx512_core": "avx512"}  # torch's words of ATEN_CPU_CAPABILITY
MKL_LEVELS = {"avx2": "AVX2", "avx512_core": "AVX512"}
_held: list[str] = []


def cap_torch(isa: str) -> None:
    """Hold torch, and the oneDNN and MKL inside, to a level; they read that when they are loaded."""
    level = f32_level(isa)
    if _held and _held[0] != level:
        raise InvalidArguments(
            f"--isa={isa}: the peer torch is already held to {_held[0]}, which is final within a process; "
            "use one process for each ISA"
        )
    if not _held:
        environment.tell_others("ATEN_CPU_CAPABILITY", CAPABILITIES[level])
        environment.tell_others("ONEDNN_MAX_CPU_ISA", level.upper())
        environment.tell_others("MKL_ENABLE_INSTRUCTIONS", MKL_LEVELS[level])
        _held.append(level)
    load_torch()


@lru_cache(maxsize=1)
def load_torch() -> Any:
    """Raises AsmdnnError that names the extra to install."""
    try:
        import torch
    except ImportError as error:
        raise AsmdnnError(f"--peer=torch: {error}; run pip install torch") from None
    return torch


class TorchRnn:
    """A PeerSide: a module in evaluation, without gradients.  Raises Unimplemented for what torch.nn does not have."""

    def __init__(self, words: LayerWords, sizes: ArgumentSizes, threads: int) -> None:
        self._torch = torch = load_torch()
        self._sizes, self._cell, self._threads = sizes, _cell(words, sizes), threads
        p = sizes.problem
        more: dict[str, Any] = {"proj_size": p.dic} if sizes.projection else {}
        if self._cell == "rnn":
            more["nonlinearity"] = words.activation.lower()
        module = getattr(torch.nn, MODULES[self._cell])
        self._module = module(p.slc, p.dhc, p.layers, bidirectional=sizes.direction == CONCAT, **more).eval()
        self.implementation = f"torch.nn.{module.__name__}"
        self._arguments: tuple[Any, ...] = ()
        self.run: Callable[[], object] = self._forward

    def write(self, data: Data) -> None:
        torch, arrays = self._torch, data.arrays
        torch.set_num_threads(self._threads)
        state: dict[str, Array] = {}
        for layer in range(self._sizes.problem.layers):
            weights = {
                name: array[layer : layer + 1] for name, array in arrays.items() if name.startswith(("weights", "bias"))
            }
            state |= dnn.recurrent.to_torch(self._cell, weights, layer)
        self._module.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in state.items()})
        src, h = (torch.from_numpy(arrays[name]) for name in ("src_layer", "src_iter"))
        h = h.reshape(-1, *h.shape[2:])
        if self._cell == "lstm":
            c = torch.from_numpy(arrays["src_iter_c"])
            h = (h, c.reshape(-1, *c.shape[2:]))
        self._arguments = src, h

    def _forward(self) -> Any:
        with self._torch.no_grad():
            return self._module(*self._arguments)

    def compute(self, data: Data) -> Array:
        self.write(data)
        dst, state = self._forward()
        states = state if self._cell == "lstm" else (state,)
        return joined([x.numpy() for x in (dst, *states)])

    def close(self) -> None:
        """Nothing to free."""


def _cell(words: LayerWords, sizes: ArgumentSizes) -> str:
    if words.alg not in CELLS:
        raise Unimplemented(f"torch: a GRU is linear before reset, --alg={words.alg} is not")
    if words.dir != "FWD_I":
        raise Unimplemented(f"torch: only --dir=FWD_I is compared, not {words.dir}")
    if words.direction not in (LEFT2RIGHT, CONCAT):
        raise Unimplemented(f"torch: --direction={LEFT2RIGHT} or {CONCAT}, not {words.direction}")
    if sizes.peephole or (words.alg == "VANILLA_RNN" and words.activation == "LOGISTIC"):
        raise Unimplemented("torch: no peephole, and no logistic activation")
    return CELLS[words.alg]
