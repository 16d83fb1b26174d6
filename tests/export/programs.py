"""Exported networks, called from this process and from programs in C."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.dump.tools import need, output

# Runs any network once: its words are threads, then the bytes of each input and, below zero, of each output.
RUN_ANY = r"""
#include <stdio.h>
#include <stdlib.h>
#include "NAME.h"
int main(int count, char **words) {
    void *tensors[64];
    asmdnn_context *context;
    FILE *in = fopen("in", "rb"), *out = fopen("out", "wb");
    if (!in || !out || count - 2 > 64) return 1;
    for (int i = 2; i < count; i++) {
        long size = atol(words[i]);
        tensors[i - 2] = malloc((size_t)labs(size));
        if (size > 0 && fread(tensors[i - 2], 1, (size_t)size, in) != (size_t)size) return 1;
    }
    const char *wrong = asmdnn_create(&context, &NAME_network, atoi(words[1]), NULL);
    if (!wrong) wrong = asmdnn_run(context, tensors);
    if (wrong) puts(wrong);
    if (asmdnn_destroy(context)) return 1;
    for (int i = 2; i < count; i++) {
        if (atol(words[i]) < 0) fwrite(tensors[i - 2], 1, (size_t)labs(atol(words[i])), out);
        free(tensors[i - 2]);
    }
    fclose(in), fclose(out);
    return 0;
}
"""
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g")


class Library:
    """A shared library that was exported, by the functions of its runtime."""

    def __init__(self, path: Path, name: str) -> None:
        self._own = ctypes.CDLL(str(path))
        self._network = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self._own, f"{name}_network")))
        for function in ("asmdnn_create", "asmdnn_run", "asmdnn_destroy"):
            getattr(self._own, function).restype = ctypes.c_char_p
        self._own.asmdnn_scratch_bytes.restype = ctypes.c_size_t

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], threads: int) -> str:
        """What is wrong, or ""."""
        context = ctypes.c_void_p()
        wrong = self._own.asmdnn_create(ctypes.byref(context), self._network, threads, None)
        if wrong:
            return wrong.decode()
        pointers = [array.ctypes.data for array in (*inputs, *outputs)]
        wrong = self._own.asmdnn_run(context, (ctypes.c_void_p * len(pointers))(*pointers))
        said = (wrong or b"").decode()
        assert self._own.asmdnn_destroy(context) is None
        return said


def results(library: Library, feeds: Mapping[str, Any], like: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """What a call gives, into arrays that hold something else before."""
    found = {name: np.empty_like(array) for name, array in like.items()}
    for array in found.values():
        array.view(np.uint8)[...] = 0xEE
    assert library.run(list(feeds.values()), list(found.values()), threads) == ""
    return found


def program(folder: Path, name: str, source: str, *options: str, compiler: str = "gcc") -> Path:
    """Compile a program with a network and the runtime, every warning an error."""
    need(compiler)
    suffix = "c" if compiler == "gcc" else "cc"
    (folder / f"main.{suffix}").write_text(source.replace("NAME", name))
    output("gcc", *STRICT, *options, "-c", "asmdnn_runtime.c", "-o", "runtime.o", cwd=folder)
    linked = (f"main.{suffix}", "runtime.o", f"{name}.o", "-pthread", "-o", "main")
    output(compiler, *STRICT, *options, *linked, cwd=folder)
    return folder / "main"
