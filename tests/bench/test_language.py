"""benchdnn's language, whole: every option of its files acts, has no effect, or counts what is missing."""

import json
import re
from pathlib import Path

import pytest

from asmdnn.bench.driver import AnyCase
from asmdnn.bench.drivers import all_driver_names, driver_names
from asmdnn.bench.options import Mistake, Reader
from asmdnn.bench.vocabulary import DRIVERS, NEUTRAL, NO_EFFECT
from asmdnn.cli.main import main
from asmdnn.errors import InvalidArguments, Unimplemented

CONV = "mb1ic3ih8oc4kh3"


def cases(words: str) -> list[AnyCase]:
    """What `bench` makes of words on the command line."""
    found = list(Reader().stream(words.split(), Path()))
    assert not any(isinstance(one, Mistake) for one in found)
    return [one for one in found if not isinstance(one, Mistake)]


def built(words: str) -> list[str]:
    """The settings of the cases that lack nothing."""
    return [str(case) for case in cases(words) if not case.settings.unbuilt]


def missing(words: str) -> list[str]:
    """What the last case lacks."""
    return [str(one) for one in cases(words)[-1].settings.unbuilt]


@pytest.mark.parametrize(
    ("words", "same_as"),
    [
        (f"--conv --dt=f32:f32:f32 {CONV}", f"--conv {CONV}"),
        (f"--conv --cfg=f32_wino {CONV}", f"--conv {CONV}"),
        (f"--conv --alg=CONVOLUTION_DIRECT {CONV}", f"--conv {CONV}"),
        (f"--conv --alg=convolution_winograd {CONV}", f"--conv --alg=wino {CONV}"),
        (f"--conv --dir=FWD_D --bia-dt=f32 {CONV}", f"--conv --dir=FWD_D --bia_dt=f32 {CONV}"),
        (f"--conv --stag= --dtag=undef {CONV}", f"--conv --stag=any {CONV}"),
        (f"--conv --attr-post-ops='sum:0.5;relu' {CONV}", f"--conv --attr-post-ops=sum:0.5+relu {CONV}"),
        (f"--conv --attr-post-ops=eltwise_relu_dst:0.5 {CONV}", f"--conv --attr-post-ops=relu:0.5 {CONV}"),
        (f"--conv --attr-scales=src0:common:0.5:f32 {CONV}", f"--conv --attr-scales=src:common:0.5* {CONV}"),
        (f"--attr-scales=src:common:2_wei:per_oc {CONV}", f"--attr-scales=src:common:2+wei:per_oc {CONV}"),
        (f"--conv --attr-post-ops=eltwise_logistic:1:2:3 {CONV}", f"--conv --attr-post-ops=logistic:0:0:3 {CONV}"),
        (f"--conv --attr-fpmath=BF16:false --attr-acc-mode= {CONV}", f"--conv --attr-fpmath=bf16 {CONV}"),
        ("--pool --attr-fpmath=bf16:true --attr-acc-mode=relaxed mb1ic3ih4kh2", "--pool mb1ic3ih4kh2"),
        (f"--conv --attr-rounding-mode=dst:environment {CONV}", f"--conv {CONV}"),
        (f"--conv --allow-enum-tags-only=0 --attr-same-pd-check=true --canonical=true {CONV}", f"--conv {CONV}"),
        (f"--conv --cold-cache=all --perf-template=%prb%,%-time% --mode-modifier=PM {CONV}", f"--conv {CONV}"),
        (f"--conv --ctx-init=2:auto --ctx-exe=1:auto:2 {CONV}", f"--conv --threads=1 {CONV}"),
        (f"--conv --mode=F --max-ms-per-prb=3e3 -v5 --start=0 {CONV}", f"--conv {CONV}"),
        (f"--conv --skip-impl=\"ref:gemm\" {CONV}n", f"--conv --global-skip-impl=ref:gemm {CONV}"),
        ("--ip --dt=f32 --cfg=f32 --dir=FWD_I --bia-dt=f32 mb0ic3oc4_n", "--ip --dir=FWD_I --bia-dt=f32 mb0ic3oc4"),
        ("--matmul --runtime_dims_masks=3:3 --runtime_m=1 2x3:3x4", "--matmul 2x3:3x4"),
        ("--reorder --runtime-dim-mask=63 2x3", "--reorder 2x3"),
        ("--rnn --tag=tnc:any:tnc t2mb3sic4", "--rnn t2mb3sic4"),
        ("--rnn --tag=bac t2mb3sic4", "--rnn --tag=ntc:any:ntc t2mb3sic4"),
        ("--matmul --runtime_dims_masks=0:0 --encoding=:: 2x3:3x4:2x4n", "--matmul 2x3:3x4:2x4"),
        ("--matmul --strides=::13x1 --dt=f32 2x3:3x4n\"*12\"", "--matmul --strides=::13x1 2x3:3x4_n*12"),
        ("--matmul --strides=: --attr-dropout= 2x3:3x4", "--matmul 2x3:3x4"),
        (f"--conv --attr-post-ops='relu;dw_k3s1p1:f32' {CONV}", f"--conv --attr-post-ops=relu+dw:k3s1p1 {CONV}"),
        (f"--conv --attr-post-ops=brelu:6+srelu+logsigmoid+gelu {CONV}",
         f"--conv --attr-post-ops=clip:0:6+soft_relu:1+soft_relu:-1+gelu_tanh {CONV}"),
        (f"--conv --attr-post-ops=soft_relu {CONV}", f"--conv --attr-post-ops=soft_relu:1 {CONV}"),
        (f"--conv --attr-oscale=,per_oc:2.25; {CONV}", f"--conv --attr-scales=,wei:per_oc:2.25 {CONV}"),
        (f"--conv --attr=oscale=common:2;post_ops='sum:1.5;relu' {CONV}",
         f"--conv --attr-scales=wei:common:2 --attr-post-ops=sum:1.5+relu {CONV}"),
        (f"--conv --attr=post_ops='relu' --attr=irmode=nearest {CONV}", f"--conv {CONV}"),
        ("--eltwise --alg=bounded_relu --alpha=6 2x3", "--eltwise --alg=clip --beta=6 2x3"),
        ("--pool --cfg=s8 ic4ih8kh3", "--pool --dt=s8:s8 ic4ih8kh3"),
        ("--pool ic8_ih3oh3_kh3ph1_dh2dw2", "--pool ic8ih3iw3oh3ow3kh3kw3ph1pw1dh2dw2"),
        ("--lnorm --dt=bf16:bf16,BF16:f32 2x3x4", "--lnorm --dt=bf16,bf16:f32 2x3x4"),
        ("--lnorm --tag=abc:any,acb:abc --dt=f32:f32 --ss_dt= 2x3x4", "--lnorm --tag=abc,acb:abc 2x3x4"),
        ("--sdpa --dt=f32:f32:f32:f32 --mdt=f32 1x1x2x3:1x1x3x4:1x1x4x3", "--sdpa 1x1x2x3:1x1x3x4:1x1x4x3"),
        ("--sdpa --dt=BF16:bf16:bf16:bf16,bf16:bf16:bf16:f32 1x1x2x3:1x1x3x4:1x1x4x3",
         "--sdpa --dt=bf16,bf16:bf16:bf16:f32 1x1x2x3:1x1x3x4:1x1x4x3"),
        ("--matmul --attr-post-ops=binary_add:f32:0:abcd:1x1x8x16 1x1x2x3:1x1x3x4",
         "--matmul --attr-post-ops=add:f32:0:abcd:1x1x8x16 1x1x2x3:1x1x3x4"),
        ("--bnorm --flags=S,GSR ic4ih8", "--bnorm --flags=CH,GCHR ic4ih8"),
        ("--lrn ic4id2n", "--lrn ic4id2ih2iw2"),
        ("--conv mb2ic4ih8kh3oc4_kh3_ph1", "--conv mb2ic4ih8kh3oc4ph1"),
        ("--eltwise --mb=3 --alg=eltwise_tanh 7x2", "--eltwise --alg=TANH 3x2"),
        ("--reorder --oflag= --cross-engine=none --runtime-dim-mask=0 2x3", "--reorder 2x3"),
        ("--reorder --attr-zero-points=src:common:1*_dst:common:-2*; 2x3",
         "--reorder --attr-zero-points=src:common:1:s32+dst:common:-2 2x3"),
        ("--resampling --dt=,bf16 ic4_ih2oh4", "--resampling ic4_ih2oh4 --sdt=bf16 --ddt=bf16 ic4_ih2oh4"),
        ("--prelu --stag=abx:any,axb:axb 2x4x3:1x4x1", "--prelu --stag=abx,axb 2x4x3:1x4x1"),
        ("--rnn --prop=BWD_DW --alg=LBR_GRU --activation=UNDEF --flags=,O --tag=any,tnc:any:tnc --scaling= sic4",
         "--rnn --dir=BWD_DW --alg=LBR_GRU sic4 sic4 sic4 sic4"),
        ("--matmul m2n4k3n\"a\" mb5m2n4k3", "--matmul 2x3:3x4n\"a\" 5x2x3:5x3x4"),
        ("--matmul --attr-post-ops=add:f32:per_mb_w m2n4k3", "--matmul --attr-post-ops=add:f32:per_mb_w 2x3:3x4"),
        ("--sum --idt=f32:f32 --odt=f32 --itag=nc:nc --otag=nc 2x4", "--sum --sdt=f32:f32 --stag=nc:nc --dtag=nc 2x4"),
        ("--reorder --idt=s8 --ifmt=nc --ofmt=cn 2x4", "--reorder --sdt=s8 --stag=nc --dtag=cn 2x4"),
        ("--shuffle --fmt=nc --attr-scratchpad=user 2x4", "--shuffle --tag=nc 2x4"),
        ("--binary --alg=ADD --sdt=f32:f32 --ddt=f32 --stag=abx:any 8x8:8", "--binary --stag=abx:any 8x8:8"),
    ],
)  # fmt: skip
def test_words_for_the_same(words: str, same_as: str) -> None:
    assert built(words) == built(same_as) != []


@pytest.mark.parametrize(
    "words",
    [
        "--reorder --ddt=s32 --attr-scales=src:common:4294967295+dst:common:1e-20 --attr-post-ops=sum:16777217 2x3",
        "--binary --attr-scales=src:common:3e20+src1:common:0.1 2x3:2x3",
        f"--conv --attr-scales=src:common:1234567.125 --attr-post-ops=sum:1e20+linear:1e-30:16777217 {CONV}",
        "--eltwise --alg=linear --alpha=1e30 --beta=1234567.125 2x3",
        "--gemm --alpha=1234567.125 --beta=1e20 3x4:4x5",
        "--sum --sdt=f32:f32 --scales=1234567.125:1e20 2x3",
    ],
)
def test_words_of_a_case_repeat_its_numbers(words: str) -> None:
    (case,) = cases(words)
    (again,) = cases(str(case))
    assert (again.settings, again.problem) == (case.settings, case.problem)


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (f"--conv --dt=f4_e3m0:f4_e3m0:f32 {CONV}", "f4_e3m0 is not built yet, only f32"),
        (f"--conv --cfg=f4_e3m0 {CONV}", "--cfg=f4_e3m0: f4_e3m0 is not built yet"),
        (f"--conv --dir=BWD_DW {CONV}", "--dir=BWD_DW: BWD_DW is not built yet, only FWD_B, FWD_D, FWD_I, BWD_D"),
        (f"--conv --bia-dt=f64 {CONV}", "--bia-dt=f64: f64 is not built yet, only f32"),
        (f"--conv --attr-post-ops=sum:0.5:1:s8 {CONV}", "has 'sum:0.5:1:s8' of type s8"),
        (f"--conv --attr-post-ops=relu+dw:k3s1p1:s8 {CONV}", "has 'dw:k3s1p1:s8'"),
        (f"--conv --attr-post-ops='relu;dw_k3s1p1:s8' {CONV}", "has 'dw_k3s1p1:s8'"),
        (f"--conv --attr-post-ops=select:s8:per_tensor:abx {CONV}", "has 'select:s8:per_tensor:abx'"),
        (f"--conv --attr-scales=wei:per_oc:s32 {CONV}", "has 'wei:per_oc:s32', and only f32, bf16, f16"),
        (f"--conv --attr-scales=wei:per_oc:f32:1x32 {CONV}", "groups of wei are not built yet"),
        (f"--conv --attr-scales=wei:common:0.3:bf16 {CONV}", "bf16 has no 0.3"),
        (f"--conv --attr-scales=wei:common:3:e8m0 {CONV}", "e8m0 has no 3"),
        (f"--conv --attr-zero-points=src:common:-1:u8 {CONV}", "u8 has no -1"),
        (f"--conv --attr-scales=wei:per_ocic:f16:2x1 {CONV}", "has 'wei:per_ocic:f16:2x1'"),
        (f"--conv --attr-scales=msrc0:common:2 {CONV}", "and only src, wei, dst is built yet"),
        ("--reorder --attr-oscale=per_oc:2.25 2x4", "--attr-oscale=per_oc:2.25: not built yet"),
        ("--reorder --attr=irmode=down;oscale= 2x4", "--attr-irmode=down: not built yet"),
        ("--pool --attr-acc-mode=s32 mb1ic3ih4kh2", "--attr-acc-mode=s32: not built yet"),
        (f"--conv --attr-rounding-mode=dst:stochastic {CONV}", "--attr-rounding-mode=dst:stochastic"),
        (f"--conv --attr-dropout=0.5:12345678 {CONV}", "--attr-dropout=0.5:12345678: not built yet"),
        ("--matmul --encoding=csr+0.99:: 2x3:3x4", "--encoding=csr+0.99::: not built yet"),
        ("--matmul --grouped=,0:2:0+2 2x3:2x3x4", "--grouped=0:2:0+2: not built yet"),
        (
            f"--conv --attr-scales=wei:per_oc+attr_post_op_dw_wei:per_oc+attr_post_op_dw_dst:common:2 {CONV}",
            "has 'attr_post_op_dw_wei:per_oc', and only src, wei, dst is built yet",
        ),
        ("--rnn --skip-nonlinear=true sic4", "--skip-nonlinear=true: not built yet"),
        ("--rnn --alg=LBR_AUGRU sic4", "--alg=LBR_AUGRU: LBR_AUGRU is not built yet"),
        ("--reorder --oflag=s8s8_comp:1+zp_comp:1 2x3", "zp_comp is not built yet"),
        ("--reorder --attr-post-ops=sum:1:3 2x3", "a zero point of the sum is not built yet"),
        ("--reorder --sdt=f4_e3m0 2x3", "f4_e3m0 is not built yet"),
        ("--sdpa --dt=s8:f32:f32:f32 1x1x2x3:1x1x3x4:1x1x4x3", "s8 is not built yet, only f32, bf16, f16"),
        ("--lnorm --dt=s8 2x3", "--dt=s8: s8 is not built yet, only f32, bf16, f16"),
        ("--pool --dt=s8:u8 ic4ih8kh3", "--dt=s8:u8: s8:u8 is not built yet"),
        ("--binary --attr-scales=src:per_tensor+src1:common:0.25 2x3:2x3", "has 'src:per_tensor'"),
    ],
)
def test_what_only_onednn_has_is_named(words: str, lacks: str) -> None:
    assert any(lacks in one for one in missing(words))
    reader = Reader()
    with pytest.raises(Unimplemented, match=re.escape(lacks)):  # commands that need a plan
        reader.read(words.split(), Path())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--lnorm --tag=ab:ba:ab 2x3", "--tag=ab:ba:ab: must be one word for both tensors, or one for each"),
        ("--prelu --sdt=f32:f32:f32 2x3:1x3", "--sdt=f32:f32:f32: must be one word for both tensors, or one for each"),
    ],
)
def test_two_tensors_have_two_words_at_most(words: str, said: str) -> None:
    with pytest.raises(InvalidArguments, match=re.escape(said)):
        cases(words)


@pytest.mark.parametrize(
    ("problem", "dims"),
    [("ic4iw5", (2, 4, 5)), ("ic4ih5", (2, 4, 5, 5)), ("ic4id5", (2, 4, 5, 5, 5)), ("ic4ih3iw5", (2, 4, 3, 5)),
     ("ic4id9ih1iw2", (2, 4, 9, 1, 2)), ("mb3ic4", (3, 4))],
)  # fmt: skip
def test_images_are_lines_squares_and_cubes(problem: str, dims: tuple[int, ...]) -> None:
    for driver in ("bnorm", "gnorm", "lrn"):
        (case,) = cases(f"--{driver} {problem}")
        assert case.problem.dims == dims
        assert cases(str(case)) == [case]


def test_layouts_of_prelus_weights_and_products_of_many_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--prelu --stag=axb:abx,abx:any 3x8x5:3x8x5 --reduction --alg=mul 64x4000:1x1"
    assert main(["bench", "--isa=avx2", *words.split()]) == 0
    assert "passed:3 " in capsys.readouterr().out.splitlines()[-1]


def test_problems_that_there_are_not_are_skipped_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_file(
            tmp_path, "ic4iw100oc4kw6dw30pw0 ic4ih2oc4oh1kh1\n--deconv ic4iw2oc4kw1pw2\n--pool ic4ih2oh1kh1", "--conv"
        )
        == 0
    )
    assert "tests:4 passed:0 skipped:4 " in capsys.readouterr().out.splitlines()[-1]


def test_results_that_cannot_replace_a_source_are_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--softmax --ddt=bf16 2x3 --ddt=f32 --dtag=axb 2x3x4", "--sum --sdt=s8:f32 2x3", "--binary 1x3:2x3")
    options = ("--softmax --inplace=true", "--sum --inplace=true", "--binary --inplace=true")
    assert main(["bench", *" ".join(f"{o} {w}" for o, w in zip(options, words, strict=True)).split()]) == 0
    assert "tests:4 passed:0 skipped:4 " in capsys.readouterr().out.splitlines()[-1]


def test_a_limit_of_operations(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--conv --isa=avx2 --threads=1 --max-gflop-per-prb=0.002 ic16ih16oc16kh3ph1 ic16ih4oc16kh3ph1"
    assert main(["bench", *words.split()]) == 0
    assert "passed:1 skipped:1 " in capsys.readouterr().out.splitlines()[-1]


def test_winograd_asked_for_where_it_does_not_apply() -> None:
    for problem in ("ic4ih8oc4kh3sh2ph1", "g2ic4ih8oc4kh3ph1", "ic4ih8oc4kh1", "ic4iw8oc4kw3pw1", "ic4ih8oc4kh3dh1"):
        (case,) = cases(f"--conv --alg=wino {problem}")
        with pytest.raises(Unimplemented, match="--alg=wino: is for 3x3 kernels"):
            case.driver.work(case)


def test_what_is_missing_counts_by_combination() -> None:
    found = cases(f"--conv --dt=f32,f4_e3m0,f64:f64:f64 --attr-post-ops=,add:s8:per_oc --attr-dropout=,0.5 {CONV}")
    assert len(found) == 12
    assert [case for case in found if not case.settings.unbuilt] == cases(
        f"--conv --attr-post-ops=,add:s8:per_oc {CONV}"
    )
    words = "--attr-post-ops=add:s8:per_oc --dt=f64:f64:f64 --attr-dropout=0.5"
    assert str(found[-1]) == f"--conv {words} {found[0].problem}"
    assert cases(str(found[-1])) == [found[-1]]


@pytest.mark.parametrize("name", sorted(set(DRIVERS) - set(driver_names())))
def test_drivers_that_are_not_built_are_read(name: str) -> None:
    problem = "--case=op/f32/conv.json" if name == "graph" else "l1t1mb1sic16"
    (case,) = cases(f"--{name} --reset --prop=FWD_D,BWD_D --what=ever --match= {problem}")
    assert case.driver.name == name
    with pytest.raises(Unimplemented, match="not built yet"):
        case.driver.work(case)
    assert name in all_driver_names()


def test_reset_forgets_what_describes_a_problem() -> None:
    words = "--mode=I --match=ic3 --impl=direct --skip-impl=ref --attr-dropout=0.5 --dt=bf16 --reset"
    (case,) = cases(f"{words} {CONV} ic4ih8oc4kh3")
    assert (case.settings.mode, case.settings.match) == ("I", "ic3")
    assert (case.settings.impl, case.settings.skip_impl, case.settings.unbuilt) == ((), (), ())


def run_file(tmp_path: Path, text: str, *words: str) -> int:
    (tmp_path / "file").write_text(text)
    return main(["bench", *words, f"--batch={tmp_path / 'file'}"])


def test_a_line_that_cannot_be_read_is_reported_and_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        f'--frobnicate=1\n--alg=fft\n{CONV}\n--reset\nic3oc4\n{CONV} n"open\n--batch=none\n--dt=f32,f31\n{CONV}\n'
        "--dt=f64,f4_e3m0 ic4ih8oc4kh3\n--reset --dtag=abc ic5ih8oc4kh3"
    )
    assert run_file(tmp_path, text, "--json=-") == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(record["title"], record["status"]) for record in records] == [
        ("file:1", "invalid_arguments"),
        ("file:2", "invalid_arguments"),
        ("file:3", "skipped"),
        ("file:5", "invalid_arguments"),
        ("file:6", "invalid_arguments"),
        ("mb1ic3ih8oc4oh6kh3ph0", "passed"),
        ("file:7", "invalid_arguments"),
        ("file:8", "invalid_arguments"),
        ("mb1ic3ih8oc4oh6kh3ph0", "passed"),
        ("mb2ic4ih8oc4oh6kh3ph0", "unimplemented"),
        ("mb2ic4ih8oc4oh6kh3ph0", "unimplemented"),
        ("mb2ic5ih8oc4oh6kh3ph0", "skipped"),
    ]
    assert "no such option" in records[0]["reason"]
    assert "--alg=fft, file:2, could not be read" in records[2]["reason"]
    assert "tag 'abc'" in records[-1]["reason"]


def test_only_what_is_wrong_makes_a_run_of_files_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_file(tmp_path, f"--dt=f4_e3m0,f32 {CONV}\n--zeropad 2x3\n--engine=gpu --eltwise 2x3", "--conv") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "tests:4 passed:1 skipped:1 mistrusted:0 unimplemented:2 invalid_arguments:0 failed:0 listed:0"


def test_what_says_little_is_mistrusted(capsys: pytest.CaptureFixture[str]) -> None:
    """Results that are all one number, or none at all; fewer than ten may be equal by chance."""
    post_ops = ("clip:100:101", "linear:1:300+exp", "relu")
    words = [word for op in post_ops for word in (f"--attr-post-ops={op}", "1x8:8x16")]
    assert main(["bench", "--json=-", "--matmul", *words, "--attr-post-ops=clip:100:101", "1x8:8x9"]) == 0
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    assert [record["status"] for record in records] == ["mistrusted", "mistrusted", "passed", "passed"]
    assert "all 16 elements that can be checked are 100" in records[0]["reason"]
    assert "tests:4 passed:2 skipped:0 mistrusted:2 " in captured.err


def test_a_mistake_on_the_command_line_comes_before_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("--eltwise\n2x3\n")
    assert main(["bench", CONV, f"--batch={tmp_path / 'file'}", "2x3", "--alg=tanhh"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--alg=tanhh: must be one of relu" in captured.err


def test_options_that_choose(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--eltwise --mode=L --alg=relu,tanh,exp --match=tanh|exp 2x3 --match= --repeats-per-prb=2 --start=3 5 7"
    assert main(["bench", *words.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["--eltwise --alg=tanh 2x3", "--eltwise --alg=exp 2x3"]
    each = [f"--eltwise{alg} {dims}" for dims in (5, 7) for alg in ("", " --alg=tanh", " --alg=exp")]
    assert lines[2:] == [line for line in each[1:] for _ in range(2)]  # the fourth of all is the second of 5


@pytest.mark.parametrize(("mode", "status"), [("R", "executed"), ("I", "initialized"), ("F", "timed")])
def test_modes(mode: str, status: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--json=-", f"--mode={mode}", "--fix-times-per-prb=1", CONV]) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert (record["status"], record["us"] is not None) == (status, mode == "F")
    assert f"{status}:1" in captured.err


def test_filters_of_implementations(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"--json=- {CONV} --impl=direct,x64 {CONV} --impl=wino {CONV} --impl= --skip-impl=ref,dir,few {CONV}"
    assert main(["bench", *words.split()]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["status"] for record in records] == ["passed", "passed", "skipped", "skipped"]
    reason = records[-1]["reason"]
    assert reason.startswith("--impl and --skip-impl leave none of ") and "direct:" in reason


def test_given_strides_and_a_third_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    conv = "--conv --strides=2304x1x192x16::2304x1x384x48 mb2ic8ih12oc20oh6kh2sh2ph0"
    matmul = "--matmul --strides=13x1:7x1:9x1,::13x1 2x4:4x4:2x4"
    reorder = "--reorder --strides=40x4x1:1x2x8 2x4x3"
    ranks = "--binary --strides=: 8x8x3:8x8 5x3:5"
    assert main(["bench", *f"{conv} {matmul} {reorder} {ranks}".split()]) == 0
    assert " passed:6 " in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    "words", ["--matmul 2x4:4x3:2x5", "--binary --inplace=true 1x5:3x5", "--stag=abc ic2ih8oc4kh3"]
)
def test_what_onednn_calls_invalid(words: str) -> None:
    with pytest.raises(InvalidArguments):
        for case in cases(words):
            case.driver.work(case).describe()


def test_the_page_names_every_word() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "bench.md").read_text()
    for name in (*NO_EFFECT, *NEUTRAL, *(f"{name}" for name in DRIVERS)):
        assert f"`{name}`" in page or f"`--{name}`" in page, name


def test_onednns_input_files(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of CI, which are small: whatever is built passes, and every line is read."""
    folder = pytestconfig.getoption("--benchdnn-inputs")
    if not folder:
        pytest.skip(
            "oneDNN's input files are not in this tree: give pytest --benchdnn-inputs=.../tests/benchdnn/inputs"
        )
    paths = [path for name in DRIVERS for path in sorted(Path(folder, name).glob(f"test_{name}_ci*"))]
    assert paths, f"no test_*_ci in the drivers' folders of {folder}"
    wrong = []
    for path in paths:
        main(["bench", "--json=-", f"--{path.parent.name}", f"--batch={path.resolve()}"])
        for record in map(json.loads, capsys.readouterr().out.splitlines()):
            if record["status"] in ("failed", "invalid_arguments"):
                wrong.append(f"{path.name}: {record['args'] or record['title']}: {record['reason']}")
    assert wrong == []
