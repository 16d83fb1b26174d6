"""Run by test_allocation.py: calls under limits of the address space; prints what is raised beyond OutOfMemory."""

import resource
import sys
import threading
from collections.abc import Callable

import numpy as np

import asmdnn as dnn
from asmdnn.memory import MemoryDesc

STEP_BYTES, STEPS = 512 << 10, 40  # up to 20 MiB beside what is there
STACK_BYTES = 16 << 20
ENGINE = dnn.Engine(isa="avx2", threads=1)
f32, ops = dnn.f32, dnn.ops


def numbers(*dims: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    return np.ones(dims, np.float32)


def calls() -> dict[str, Callable[[], object]]:
    """Each allocates a megabyte or more; f64 has to be converted, what is strided to be copied."""
    matrix, image, weights = numbers(512, 512), numbers(1, 64, 64, 64), numbers(64, 64, 3, 3)
    condition = matrix > 0
    strided = numbers(512, 512, 2)[:, ::-1, 0]
    state = {"weight_ih_l0": np.ones((512, 128)), "weight_hh_l0": np.ones((512, 128))}
    layer = {"weights_layer": numbers(1, 1, 256, 4, 256), "weights_iter": numbers(1, 1, 256, 4, 256),
             "bias": numbers(1, 1, 4, 256)}  # fmt: skip
    desc = MemoryDesc((512, 512), f32, "ab")
    memory = dnn.Memory(MemoryDesc((512, 513), f32, "aB8b"))
    rows = list(matrix)  # arrays in a list, which has to be copied
    arrays: dict[str, Callable[[], object]] = {
        "matmul": lambda: ops.matmul(matrix, matrix, engine=ENGINE),
        "matmul, strided": lambda: ops.matmul(strided, matrix, engine=ENGINE),
        "matmul, a list": lambda: ops.matmul(rows, matrix, engine=ENGINE),
        "inner_product": lambda: ops.inner_product(strided, matrix, engine=ENGINE),
        "pack_weights": lambda: ops.pack_weights(matrix, engine=ENGINE),
        "resize": lambda: ops.resize(image, factor=2, engine=ENGINE),
        "conv2d": lambda: ops.conv2d(image, weights, padding=1, engine=ENGINE),
        "winograd": lambda: ops.conv2d(image, weights, padding=1, algorithm="winograd", engine=ENGINE),
        "conv_transpose2d": lambda: ops.conv_transpose2d(image, weights, padding=1, engine=ENGINE),
        "binary": lambda: ops.binary("add", matrix, matrix, engine=ENGINE),
        "select": lambda: ops.select(condition, matrix, matrix, engine=ENGINE),
        "eltwise": lambda: ops.eltwise(matrix, "exp", engine=ENGINE),
        "softmax": lambda: ops.softmax(matrix, engine=ENGINE),
        "layer_norm": lambda: ops.layer_norm(matrix, engine=ENGINE),
        "max_pool": lambda: ops.max_pool(image, 3, stride=1, return_indices=True, engine=ENGINE),
        "reduce": lambda: ops.reduce(numbers_of["cube"], "sum", 1, engine=ENGINE),
        "topk": lambda: ops.topk(numbers_of["wide"], 32, engine=ENGINE),
        "argmax": lambda: ops.argmax(numbers_of["cube"], 1, engine=ENGINE),
        "concat": lambda: ops.concat([matrix, matrix], engine=ENGINE),
        "split": lambda: ops.split(matrix, 2, engine=ENGINE),
        "slice": lambda: ops.slice(matrix, (0, -1), (512, -513), (1, -1), engine=ENGINE),
        "gather": lambda: ops.gather(matrix, np.arange(512)[::-1], engine=ENGINE),
        "pad": lambda: ops.pad(matrix, 1, engine=ENGINE),
        "expand": lambda: ops.expand(numbers_of["row"], (512, 512), engine=ENGINE),
        "dropout": lambda: ops.dropout(matrix, 0.5, seed=1, engine=ENGINE),
        "weighted_sum": lambda: ops.weighted_sum([matrix, matrix], engine=ENGINE),
        "attention": lambda: ops.attention(heads, heads, heads, engine=ENGINE),
        "lstm": lambda: ops.lstm(numbers_of["steps"], layer, engine=ENGINE),
        "sgemm's packing": lambda: dnn.gemm_pack("B", "N", 2.0, matrix, engine=ENGINE),
    }
    heads, numbers_of = numbers(4, 4, 128, 128), {
        "cube": numbers(64, 8, 8192), "row": numbers(1, 512), "steps": numbers(64, 8, 256),
        "wide": numbers(16384, 64),
    }  # fmt: skip
    memories: dict[str, Callable[[], object]] = {
        "Memory": lambda: dnn.Memory(desc),
        "Memory.from_numpy": lambda: dnn.Memory.from_numpy(matrix, desc),
        "Memory.numpy": memory.numpy,
        "MemoryDesc.offsets": desc.offsets,
        "reorder": lambda: dnn.reorder(memory, MemoryDesc((512, 513), f32, "ba"), ENGINE),
        "recurrent.from_torch": lambda: dnn.recurrent.from_torch("lstm", state),
        "recurrent.to_torch": lambda: dnn.recurrent.to_torch("lstm", layer),
        "recurrent.to_onnx": lambda: dnn.recurrent.to_onnx("lstm", layer),
    }
    return arrays | memories


def address_space_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def raised(call: Callable[[], object], more_bytes: int) -> str:
    """The class of what is raised with so much more address space; "" if nothing is."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes() + more_bytes, hard))
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}" if type(error) is not dnn.OutOfMemory else "OutOfMemory"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    return ""


def main(every: int) -> None:
    """A line for each such call: how often it was refused memory, and what else was raised."""
    for name, call in list(calls().items())[::every]:
        call()  # it is planned once: under such a limit numpy's indexing crashes, where it is refused 64 KiB
        counts = {"": 0, "OutOfMemory": 0}
        for step in range(STEPS):
            what = raised(call, step * STEP_BYTES)
            counts[what] = counts.get(what, 0) + 1
            if counts[""] == 2:
                break
        print(name, counts.pop("OutOfMemory"), counts.pop(""), *counts, sep="\t")


if __name__ == "__main__":
    threading.stack_size(STACK_BYTES)  # whole from the start: that of the main thread grows, and dies of the limit
    thread = threading.Thread(target=main, args=(int(sys.argv[1]),))
    thread.start()
    thread.join()
