"""What a plan multiplies with, by its types and level, and the peak that its speed is a share of; none is run."""

import math

import pytest

import asmdnn as dnn
from asmdnn.analyze import dots as module
from asmdnn.analyze.dots import Dots, dots_of
from asmdnn.cli.explain import one_case
from asmdnn.isa.levels import isa_of

BF16, BYTES, SIGNED, NIBBLES = "bf16:bf16:f32", "u8:s8:s32", "s8:s8:f32", "f32:s4:f32"


def found(isa: str, *words: str, machine: str = "zen4") -> Dots:
    case = one_case("a test", list(words))
    work = case.driver.work(case)
    assert not isinstance(work, str)
    desc, attr = work.describe()
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa_of(isa).name, threads=1, machine=machine))
    return dots_of(pd.plan, isa)


@pytest.mark.parametrize(
    ("isa", "types", "name", "level"),
    [
        ("avx2", "f32", "FMA", "avx2"),
        ("avx512_core_amx", "f32", "FMA", "avx512_core_amx"),
        ("avx2", BF16, "FMA", "avx2"),
        ("avx512_core_vnni", "f16:f16:f32", "FMA", "avx512_core_vnni"),
        ("avx512_core_bf16", BF16, "VDPBF16PS", "avx512_core_bf16"),
        ("avx512_core_amx", BF16, "TDPBF16PS", "avx512_core_amx"),
        ("avx2", BYTES, "VPMADDWD", "avx2"),
        ("avx512_core", BYTES, "VPMADDWD", "avx512_core"),
        ("avx2_vnni", BYTES, "VPDPBUSD_VEX", "avx2_vnni"),
        ("avx512_core_bf16", BYTES, "VPDPBUSD", "avx512_core_vnni"),
        ("avx512_core_amx", BYTES, "TDPBUSD", "avx512_core_amx"),
        ("avx512_core_amx", SIGNED, "TDPBSSD", "avx512_core_amx"),
        ("avx2", "u8:u8:s32", "VPMULLD", "avx2"),
    ],
)
def test_products_by_types_and_level(isa: str, types: str, name: str, level: str) -> None:
    machine = "sapphire_rapids" if isa == "avx512_core_amx" else "zen4"
    dots = found(isa, "--matmul", f"--dt={types}", "128x256:256x256", machine=machine)
    assert (dots.name, dots.levels) == (name, {name: level})


@pytest.mark.parametrize(
    ("isa", "words", "name"),
    [
        ("avx512_core_bf16", "--conv --dt=bf16 mb1ic64ih14oc64oh14kh3ph1", "VDPBF16PS"),
        ("avx512_core_bf16", "--conv --alg=auto --dt=bf16 mb1ic64ih56oc64oh56kh3ph1", "VDPBF16PS"),
        ("avx512_core_vnni", "--conv --dt=u8:s8:u8 --attr-scales=wei:per_oc mb1ic64ih14oc64oh14kh3ph1", "VPDPBUSD"),
        ("avx2", "--conv --dt=bf16 g64mb1ic64ih14oc64oh14kh3ph1", "FMA"),
        ("avx512_core_bf16", "--matmul --dt=f32 --attr-fpmath=bf16 128x256:256x256", "VDPBF16PS"),
        ("avx512_core_bf16", "--sdpa --dt=bf16 1x12x128x64:1x12x64x128:1x12x128x64", "VDPBF16PS"),
        ("avx512_core_bf16", "--sdpa --dt=f32 1x12x128x64:1x12x64x128:1x12x128x64", "FMA"),
        ("avx512_core_vnni", "--matmul --dt=s8:s8:f32 --wtag=ab 16x256:256x256", "VPDPBUSD"),  # and sums of columns
        ("avx512_core_bf16", "--rnn --cfg=bf16 --alg=VANILLA_LSTM l1t8mb4sic64slc64dhc64dic64", "VDPBF16PS"),
        ("avx512_core_amx", "--matmul --dt=f16 --attr-acc-mode=f16 128x256:256x256", "VFMADD231PH"),
        ("avx512_core_amx", "--matmul --dt=f16 128x256:256x256", "FMA"),
        ("avx512_core_fp16", "--conv --dt=f16 --attr-acc-mode=f16 mb1ic64ih14oc64oh14kh3ph1", "VFMADD231PH"),
        ("avx2", "--quantized --bits=4 1x256:256x256", "VPMADDUBSW+VPMADDWD"),
        ("avx2", "--softmax 64x512", "FMA"),
    ],
)
def test_other_plans(isa: str, words: str, name: str) -> None:
    assert found(isa, *words.split()).name == name


def test_the_peak_of_several_is_that_of_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, int, float]] = []

    def measured(isa: str, name: str, threads: int, reached: float) -> float:
        asked.append((isa, name, threads, reached))
        return {"VPMADDWD": 300.0, "VPMADDUBSW": 100.0}[name]

    monkeypatch.setattr(module, "multiply_add_gflops", measured)
    dots = Dots({"VPMADDUBSW": 1.0, "VPMADDWD": 3.0}, {"VPMADDUBSW": "avx2", "VPMADDWD": "avx2"})
    assert dots.peak_gflops(2, reached=199.0) == pytest.approx(200.0)  # 4 in 1 / 100 + 3 / 300
    assert asked == [("avx2", "VPMADDUBSW", 2, 0.0), ("avx2", "VPMADDWD", 2, 0.0)]
    dots.peak_gflops(2, reached=201.0)
    assert [reached for *_, reached in asked[2:]] == [0.0, 0.0, math.inf, math.inf]
