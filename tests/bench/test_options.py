"""Options stay in force, lists multiply, batch files nest, and every mistake is named with its place."""

from math import prod
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.bench import batch_files
from asmdnn.bench.conv_work import ConvSettings as Settings
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import Reader
from asmdnn.bench.post_ops import chain
from asmdnn.errors import InvalidArguments

PROBLEM = "mb1ic3ih8oc4kh3"


def read(*words: str, directory: Path = Path()) -> list[AnyCase]:
    reader = Reader()
    reader.read(words, directory)
    return reader.cases


def test_options_hold_for_the_problems_after_them() -> None:
    cases = read("--conv", PROBLEM, "--dir=FWD_I", "--attr-post-ops=sum+relu", PROBLEM, "--attr-post-ops=", PROBLEM)
    assert [case.settings for case in cases] == [
        Settings(),
        Settings(dir="FWD_I", post_ops=chain("sum+relu")),
        Settings(dir="FWD_I"),
    ]


def test_defaults_are_benchdnns() -> None:
    (case,) = read("ic3ih8oc4kh3")
    assert (case.settings.mode, case.settings.dir, case.settings.stag, case.problem.mb) == ("C", "FWD_B", "any", 2)


def test_lists_run_every_combination() -> None:
    cases = read("--dir=FWD_B,FWD_I", "--stag=any,axb", "--attr-post-ops=,relu", "--mb=1,16", PROBLEM)
    assert len({(c.settings, c.problem) for c in cases}) == 16
    assert {case.settings.stag for case in cases} == {"any", "axb"}
    assert {case.settings.post_ops for case in cases} == {(), chain("relu")}
    assert {case.problem.mb for case in cases} == {1, 16}


def test_mb_zero_keeps_the_problems_own() -> None:
    assert [c.problem.mb for c in read("--mb=7", PROBLEM, "--mb=0", PROBLEM)] == [7, 1]


def test_reset_keeps_what_does_not_describe_the_problem() -> None:
    words = ("--mode=P", "--threads=2", "--peer=onednn", "--dir=FWD_I", "--dtag=nhwc", "--mb=4", "--reset", PROBLEM)
    (case,) = read(*words)
    assert case.settings == Settings(mode="P", threads=2, peer="onednn")


def test_benchdnns_other_spellings() -> None:
    (case,) = read("--cfg=f32", "--alg=DIRECT", "--mode=pc", "--dir=fwd_d", "--peer=none", "--stag=abx", PROBLEM)
    assert case.settings == Settings(mode="CP", dir="FWD_D", stag="abx")


def test_the_best_level_is_the_default_one() -> None:
    assert read("--isa=best", PROBLEM) == read(PROBLEM)


def test_a_case_prints_what_repeats_it() -> None:
    (case,) = read("--dir=FWD_I", "--attr-post-ops=sum+relu", "--isa=avx2", "--mb=3", PROBLEM)
    text = str(case)
    assert text == "--conv --dir=FWD_I --attr-post-ops=sum+relu --isa=avx2 mb3ic3ih8oc4oh6kh3ph0"
    assert read(*text.split()) == [case]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--mode=X",), "--mode=X: must be one of C, P, CP, F, R, I, L"),
        (("--mode=",), "--mode=: must be"),
        (("--dir=BWD",), "--dir=BWD: must be one of FWD_B, FWD_D, FWD_I"),
        (("--dt=f32,f31",), "--dt=f32,f31: must be f32, or the types of src, weights and dst"),
        (("--dt=f32:f32",), "must be f32, or the types of src, weights and dst"),
        (("--cfg=u8s8u9",), "--cfg=u8s8u9: must be f32, or the types"),
        (("--stag=nc hw",), "--stag=nc hw: must be any"),
        (("--strides=1x2:a",), "--strides=1x2:a: must be the strides of 3 tensors"),
        (("--strides=1:1:1:1",), "must be the strides of 3 tensors"),
        (("--match=(",), "--match=(: is no regular expression"),
        (("--engine=tpu",), "must be one of cpu, gpu"),
        (("--attr-post-ops=sum+tan",), "--attr-post-ops=sum+tan: has 'tan'; post-ops are sum, an element-wise"),
        (("--attr-post-ops=relu+",), "has ''"),
        (("--mb=-1",), "--mb=-1: must be a whole number from 0"),
        (("--mb=x",), "--mb=x: must be a whole number"),
        (("--threads=99999999999",), "--threads=99999999999: must be a whole number"),
        (("--threads=1.5",), "--threads=1.5: must be"),
        (("--max-ms-per-prb=0",), "must be a whole number from 1"),
        (("--peer=xnn",), "--peer=xnn: must be one of onednn, mkl, numpy, torch, none"),
        (("--alg=fft",), "--alg=fft: must be one of direct, auto, wino"),
        (("--theads=1",), "did you mean --threads="),
        (
            ("--attr-scales=weights:common:2",),
            "--attr-scales=weights:common:2: has 'weights': arguments are src, wei, dst",
        ),
        (("--attr-scales=wei:4096",), "has the policy '4096': policies are common, per_dim_0, "),
        (("--attr-scales=wei:common",), "has 'wei:common' without a value"),
        (("--attr-scratchpad=mine",), "--attr-scratchpad=mine: must be one of library, user"),
        (("--attr-denormals=on",), "--attr-denormals=on: must be one of default, flush, keep"),
        (("--attr-deterministic=2",), "--attr-deterministic=2: must be one of true, false"),
        (("--attr-points=src:common:1",), "no such option: did you mean --attr-zero-points="),
        (("--zzyzx=1",), "no such option; options are --mode"),
        (("--lstm",), "--lstm: no such option"),
        (("--mode",), "--mode: an option is written --mode=VALUE"),
        (("-w1",), "-w1: no such option"),
        (("",), "problem ''"),
        (("--batch=no_such_net",), "no such file, and no problem set either"),
        (("--batch=",), "--batch=: no such file"),
        (("--batch=..",), "--batch=..: it is a directory"),
    ],
)
def test_mistakes(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        read(*words, PROBLEM)
    assert says in str(raised.value)


def test_batch_file(tmp_path: Path) -> None:
    (tmp_path / "shapes").write_text(
        "# a comment\n\n"
        '  mb1ic3ih8oc4kh3n"two words"   # and another\n'
        "--attr-post-ops=, \\\n     relu, \\\n     sum+relu\n"
        "mb1ic1ih4oc1kh1 mb1ic2ih4oc2kh1\n"
    )
    (tmp_path / "outer").write_text("--dir=FWD_I\n--batch=shapes\r\n")
    cases = read("--batch=outer", PROBLEM, directory=tmp_path)
    assert cases[0].problem.name == "two words"
    assert [c.settings.post_ops for c in cases[1:4]] == [(), chain("relu"), chain("sum+relu")]
    assert len(cases) == 1 + 3 + 3 + 3  # the options of the file stay in force after it
    assert all(case.settings.dir == "FWD_I" for case in cases)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\nic3oc4\n", "bad:2: problem 'ic3oc4': a spatial size is missing"),
        (b"--dir=FWD_I\n--zzyzx=1\n", "bad:2: --zzyzx=1: no such option"),
        (b'ic3ih8oc4kh3n"open\n', "bad:1: a quote is not closed"),
        (b"--dir=FWD_I \\\n", "bad:1: the last line ends in a backslash"),
        (b"\xff\xfe\n", "bad cannot be read: it is no text"),
        (b"--batch=bad\n", "bad:1: --batch=bad: the file includes itself"),
        (b"--batch=none\n", "bad:1: --batch=none: no such file"),
    ],
)
def test_batch_mistakes(tmp_path: Path, text: bytes, says: str) -> None:
    (tmp_path / "bad").write_bytes(text)
    with pytest.raises(InvalidArguments) as raised:
        read("--batch=bad", directory=tmp_path)
    assert says in str(raised.value)


def test_a_local_file_comes_before_a_set_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "vgg_16").write_text(PROBLEM)
    assert len(read("--batch=vgg_16", directory=tmp_path)) == 1


@pytest.mark.parametrize(
    ("name", "shapes", "convolutions", "multiplications"),
    [
        # An image's multiplications as published, padding counted, less those of the final fully connected layers.
        ("resnet_50", 20, 53, 3.858e9 - 2.048e6),
        ("resnet_50_v1_5", 23, 53, 4.089e9 - 2.048e6),
        ("resnet_50_network", 53, 53, 3.858e9 - 2.048e6),
        ("mobilenet_v1", 19, 27, 569e6 - 1.024e6),
        ("vgg_16", 9, 13, 15.47e9 - 123.6e6),
        ("mobilenet_v2", 30, 52, 300.8e6 - 1.28e6),
        ("mobilenet_v3", 34, 46, 212.6e6),  # and squeeze-and-excite, and layers after the pool
        ("efficientnet_b0", 32, 49, 385.8e6 - 1.28e6 - 0.65e6),  # less squeeze-and-excite
        ("pp_lcnet", 19, 27, 153.6e6),
        ("resnext50_32x4d", 24, 53, 4.230e9 - 2.048e6),
        ("shufflenet_v1_g3", 19, 49, 136.5e6),
        ("regnet_x_400mf", 20, 71, 413.4e6),
        ("regnet_x_3_2gf", 21, 80, 3.1766e9 - 1.008e6),
        ("convnext_tiny", 16, 58, 4.456e9 - 0.768e6),
        ("c3d", 7, 8, 38.5e9),
    ],
)
def test_problem_sets(name: str, shapes: int, convolutions: int, multiplications: float) -> None:
    problems = [case.problem for case in read("--mb=1", f"--batch={name}")]
    assert len(problems) == shapes
    assert sum(problem.count for problem in problems) == convolutions
    total = sum(prod(problem.dst_dims) * problem.reduction * problem.count for problem in problems)
    assert total == pytest.approx(multiplications, rel=1e-3)
    assert len({problem.name for problem in problems}) == shapes
    assert all(problem.name.startswith(f"{name}:") for problem in problems)


def test_the_network_and_its_shapes_agree() -> None:
    network = [case.problem for case in read("--batch=resnet_50_network")]
    shapes = [case.problem for case in read("--batch=resnet_50")]
    count = {(*problem.axes, problem.ic, problem.oc): problem.count for problem in shapes}
    keys = [(*problem.axes, problem.ic, problem.oc) for problem in network]
    assert {key: keys.count(key) for key in keys} == count
    endings = [case.settings.post_ops for case in read("--batch=resnet_50_network")]
    assert endings.count(chain("sum+relu")) == 16
    assert endings.count(()) == 4
    assert endings.count(chain("relu")) == 33


@pytest.mark.parametrize(("name", "count"), [("winograd", 16), ("winograd_groups", 23)])
def test_the_sets_of_winograd_are_for_it(name: str, count: int) -> None:
    cases = read(f"--batch={name}")
    assert len(cases) == count
    assert all(case.problem.is_dense_3x3 for case in cases)


@pytest.mark.parametrize("name", batch_files.problem_sets())
def test_every_set_has_problems_that_can_be_planned(name: str) -> None:
    cases = read(f"--batch={name}")
    assert len(cases) > 2
    assert len({case.driver.name for case in cases}) == 1
    work = cases[0].driver.work(cases[0])
    desc, attr = work.describe()
    assert dnn.primitive_desc(desc, attr, dnn.Engine(isa="avx2", threads=1)).plan.phases
