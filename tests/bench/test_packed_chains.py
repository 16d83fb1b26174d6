"""Packs of products, functions and chains with tensors, in a process in which PeachPy is not installed."""

import json
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.primitives.core.packing import read_pack
from tests.support.functions import swirl
from tests.support.python import NO_PEACHPY, python

ROOT = Path(__file__).parents[2]
ENGINE = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10)
CHAIN = "--attr-post-ops=sum:0.5:1+linear:2:1:0.5+add:f32:per_oc+prelu:per_tensor+mul:f32:per_dim_0+tanh"
WORDS = [
    "--matmul", CHAIN, "--wtag=any,ab", "--bia_dt=f32", "17x20:20x33",
    "--ip", CHAIN, "mb5ic17oc33",
    "--eltwise", CHAIN, "--alg=gelu_erf", "2x17x3x5",
    "--binary", CHAIN, "--alg=sub", "2x17x3x5:1x17x1x1",
    "--conv", CHAIN.replace("per_dim_0", "per_oc"), "mb1ic16ih6oc17kh3ph1",
    "--gemm", "--beta=0.5", "--pack=none,b", "9x8:8x17",
    "--shuffle", "--group=4", "2x16x3x3",
]  # fmt: skip
START = (
    NO_PEACHPY
    + """
import numpy as np
import asmdnn as dnn
from asmdnn.runtime.kernels import kernel_cache
dnn.load_pack(sys.argv[1])

def finish():
    counts = kernel_cache().counts
    print(json.dumps([counts.pack_hits > 0, counts.disk_hits, counts.generated, "peachpy" in sys.modules]))
"""
)
# Every case as bench runs it: right numbers, or a line on stderr.
BENCH = (
    START
    + """
from pathlib import Path
from asmdnn.bench.judge import judge
from asmdnn.bench.options import Reader
from asmdnn.bench.own import Own
reader = Reader()
reader.read(json.loads(sys.argv[2]), Path())
engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10)
for case in reader.cases:
    work = case.driver.work(case)
    own = Own(*work.describe(), engine, work.in_place)
    for exact in work.exactness:
        data = work.data(exact)
        reason = judge(own.compute(data), work.answer(data), exact).reason
        assert not reason, (str(case), reason)
finish()
"""
)
USER = (
    START
    + """
def swirl(x, c, slope):
    return dnn.where(x > 0, x, c * dnn.tanh(slope * x))

engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10)
rng = np.random.default_rng(1)
a, b, c = (rng.standard_normal(dims).astype(np.float32) for dims in ((5, 8), (8, 12), (1, 12)))
y = dnn.ops.matmul(a, b, post_ops=[dnn.PostOp(swirl, c=c, slope=0.75)], engine=engine)
assert np.allclose(y, swirl(a.astype(np.float64) @ b, c, 0.75), atol=1e-5)
finish()
"""
)


def result_of(script: str, *arguments: str) -> list[object]:
    """[kernels from the pack, from disk, generated, PeachPy imported] of a new process."""
    return list(json.loads(python(script, *arguments, ASMDNN_CACHE="0")))


@pytest.mark.isa("avx2")
def test_every_driver_from_a_pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pack"
    assert main(["pack", "--isa=avx2", "--l2-bytes=524288", *WORDS, "-o", str(path)]) == 0
    assert "skipped" not in capsys.readouterr().out
    assert result_of(BENCH, str(path), json.dumps(WORDS)) == [True, 0, 0, False]


@pytest.mark.isa("avx2")
def test_a_post_op_of_the_users_own(tmp_path: Path) -> None:
    """Its expression is the key: the same function in another process finds the kernel."""
    plain = {name: dnn.MemoryDesc(dims, dnn.f32, "ab") for name, dims in
             {"src": (5, 8), "weights": (8, 12), "dst": (5, 12)}.items()}  # fmt: skip
    attr = dnn.Attr([dnn.PostOp(swirl, c=dnn.MemoryDesc((1, 12), dnn.f32, "ab"), slope=0.75)])
    pack = dnn.write_pack(tmp_path / "x.pack", [dnn.primitive_desc(dnn.MatMul(**plain), attr, ENGINE)])
    assert pack.plans == 1
    assert result_of(USER, pack.path) == [True, 0, 0, False]


def test_a_pack_serves_both_forward_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pack", "--isa=avx512_core", "--ip", "--stag=ab", "--wtag=ab", "--dtag=ab", "--dir=FWD_I",
                 "mb2ic3oc4", "-o", "x.pack"]) == 0  # fmt: skip
    assert read_pack("x.pack").plans == 2
