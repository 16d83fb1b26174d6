"""Who owns the temporary memory of a call: the primitive, or the user."""

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.conv_case import case_of, proven
from tests.primitives.tensors import holding
from tests.support.together import at_once

CONV = case_of("mb1ic17ih7oc9oh7kh3ph1 nchw nchw bias sum")  # between reorders, so with scratch
PLAIN = dnn.MemoryDesc((4, 4), dnn.f32, "ab")


def tensor(dims: tuple[int, ...], tag: str = "ab") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


DESCRIPTIONS = {
    "convolution": CONV.desc(),
    "matmul": dnn.MatMul(tensor((20, 30)), tensor((30, 40), "ba"), tensor((20, 40))),
    "split_k": dnn.MatMul(tensor((1, 9000)), tensor((9000, 200)), tensor((1, 200))),
    "inner product": dnn.InnerProductForward(tensor((20, 30)), tensor((40, 30)), tensor((20, 40))),
    "backward weights": dnn.InnerProductBackwardWeights(tensor((20, 90)), tensor((70, 90)), tensor((20, 70))),
    "without scratch": dnn.MatMul(tensor((2, 3)), tensor((3, 4)), tensor((2, 4))),
    "reorder": dnn.Reorder(tensor((5, 6)), tensor((5, 6), "ba")),
    "shuffle": dnn.Shuffle(tensor((5, 6)), tensor((5, 6)), axis=1, group_size=2),
}


def memories_of(pd: dnn.PrimitiveDesc, seed: int = 0) -> dict[str, dnn.Memory]:
    random = np.random.default_rng(seed)
    return {
        name: holding(desc, random.integers(-3, 4, desc.dims).astype(np.float32))
        for name, desc in pd.plan.tensors.items()
    }


def scratchpad_of(pd: dnn.PrimitiveDesc) -> dnn.Memory:
    """Full of 255: nothing may depend on what it held."""
    memory = dnn.Memory(pd.scratchpad_desc)
    memory.array[:] = 255
    return memory


def outputs(pd: dnn.PrimitiveDesc, memories: dict[str, dnn.Memory]) -> list[bytes]:
    return [memories[name].array.tobytes() for name in pd.plan.outputs]


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_both_modes_compute_the_same(isa: str, name: str) -> None:
    engine, desc = dnn.Engine(isa=isa, threads=1), DESCRIPTIONS[name]
    library, user = (dnn.primitive_desc(desc, dnn.Attr(scratchpad_mode=mode), engine) for mode in ("library", "user"))
    size = user.scratchpad_desc.size_bytes
    assert (size == 0) == (name in ("without scratch", "reorder", "shuffle"))
    assert library.scratchpad_desc == dnn.MemoryDesc((0,), dnn.u8, "a")
    assert (library.memory_consumption, user.memory_consumption) == (size, 0)
    assert library.plan.specs == user.plan.specs
    ours, theirs, bound = (memories_of(library) for _ in range(3))
    dnn.Primitive(library).execute(**ours)
    primitive = dnn.Primitive(user)
    primitive.execute(**theirs, scratchpad=scratchpad_of(user))
    assert outputs(user, theirs) == outputs(library, ours)
    primitive.bind(**bound, scratchpad=scratchpad_of(user))()
    assert outputs(user, bound) == outputs(library, ours)
    if size == 0:
        primitive.execute(**theirs)
        primitive.execute(**theirs, scratchpad=None)


@pytest.mark.parametrize("mode", ["library", "user"])
def test_many_threads_at_once(isa: str, mode: str) -> None:
    pd = dnn.primitive_desc(DESCRIPTIONS["matmul"], dnn.Attr(scratchpad_mode=mode), dnn.Engine(isa=isa, threads=1))
    primitive, wrong = dnn.Primitive(pd), []

    def work(seed: int) -> None:
        memories = memories_of(pd, seed)
        extra = {"scratchpad": scratchpad_of(pd)} if mode == "user" else {}
        wanted = memories["src"].numpy() @ memories["weights"].numpy()
        for _ in range(50):
            primitive.execute(**memories, **extra)
            if not np.array_equal(memories["dst"].numpy(), wanted):
                wrong.append(seed)

    at_once(work)
    assert wrong == []


def test_what_is_no_scratchpad(isa: str) -> None:
    pd = dnn.primitive_desc(DESCRIPTIONS["matmul"], dnn.Attr(scratchpad_mode="user"), dnn.Engine(isa=isa, threads=1))
    primitive, memories, size = dnn.Primitive(pd), memories_of(pd), pd.scratchpad_desc.size_bytes

    def refuse(scratchpad: object, message: str) -> None:
        with pytest.raises(dnn.InvalidArguments, match=message):
            primitive.execute(**memories, scratchpad=scratchpad)  # type: ignore[arg-type]
        with pytest.raises(dnn.InvalidArguments, match=message):
            primitive.bind(**memories, scratchpad=scratchpad)  # type: ignore[arg-type]

    def of_bytes(count: int, buffer: object = None) -> dnn.Memory:
        return dnn.Memory(dnn.MemoryDesc((count,), dnn.u8, "a"), buffer)

    refuse(None, f"scratchpad must be a Memory of {size} bytes, not NoneType")
    refuse(np.zeros(size, np.uint8), "not ndarray")
    refuse(of_bytes(size - 1), f"scratchpad has {size - 1} bytes, this primitive needs {size}")
    refuse(of_bytes(size, of_bytes(size + 64).array[4 : size + 4]), "misaligned")
    constant = of_bytes(size).array
    constant.flags.writeable = False
    refuse(of_bytes(size, constant), "read-only")
    large = of_bytes(size + 4096)
    memories["src"] = dnn.Memory(pd.src_desc, large.array[size - 64 : size - 64 + pd.src_desc.size_bytes])
    refuse(large, "scratchpad overlaps src")
    primitive.execute(**memories, scratchpad=of_bytes(size + 1000))


def test_library_mode_takes_none(isa: str) -> None:
    pd = proven(CONV, isa)
    with pytest.raises(dnn.InvalidArguments, match="scratchpad_mode is 'library'"):
        dnn.Primitive(pd).execute(**memories_of(pd), scratchpad=scratchpad_of(pd))


@pytest.mark.parametrize("mode", ["User", "", None, 1])
def test_modes_that_do_not_exist(mode: object) -> None:
    with pytest.raises(dnn.InvalidArguments, match="scratchpad_mode must be one of library, user, not "):
        dnn.Attr(scratchpad_mode=mode)  # type: ignore[arg-type]
