"""The drivers of softmax and norms: problems pass, and cases repeat."""

import pytest

import asmdnn as dnn
from asmdnn.bench.channel_norms import NormProblem, parse
from asmdnn.bench.judge import judge
from asmdnn.bench.own import Own
from asmdnn.cli.main import main
from tests.support.cases import read

PROBLEMS = [
    "--softmax --stag=abx,axb --axis=1,-1 --alg=SOFTMAX,LOGSOFTMAX --inplace=false,true 2x19x3x5",
    "--softmax --stag=aBx8b --dtag=any,abx --attr-post-ops=linear:2:1+add:f32:per_oc 2x16x3x5",
    "--lnorm --tag=abx,axb --flags=,CH,GC,M --inplace=false,true 3x19",
    "--lnorm --tag=abc:acb,acb:bac --stat_tag=ab,ba --ss_dt=f32 --flags=CH 3x2x19",
    "--bnorm --dt=bf16,f16 --flags=,CH,GCHR --tag=abx,axb mb2ic19ih4",
    "--gnorm --dt=bf16,f16 --flags=,CH,G --tag=abx,axb g2mb2ic18ih4",
    "--lnorm --dt=bf16,f16,bf16:f32,f32:f16 --flags=,GCH,M 3x70",
    "--lnorm --dir=FWD_I --flags=CHM,H --attr-post-ops=linear:2:1+add:f32:per_oc 2x3x40",
    "--reduction --alg=sum,max,norm_lp_sum --p=1,3 --eps=0.5 --stag=abx,axb,aBx8b 2x16x3x5:2x16x1x1 2x19x3x5:1x1x3x1",
    "--bnorm --tag=abx,axb,aBx8b --dir=FWD_D,FWD_I --flags=,GC,CHR --inplace=true,false mb2ic16ih5 mb3ic19ih4eps1e-3",
    "--bnorm --tag=axb,aBx8b --dir=FWD_D,FWD_I --flags=A,GCHA --attr-post-ops=,linear:2:1 mb2ic19ih5",
    "--gnorm --tag=abx,aBx8b --dir=FWD_D,FWD_I --flags=CH --attr-post-ops=sum:0.5+relu g4mb2ic16ih5 g19mb2ic19id3ih4",
    "--sdpa --mask=none,buffer,buffer_1d,buffer_2d,causal_bottom_right --ktag=abx,abdc,any 1x4x9x8:1x2x8x12:1x2x12x5",
    "--sdpa --dt=bf16,f16,bf16:bf16:bf16:f32,f32:f32:f32:f16 --mask=none,buffer,causal_bottom_right --ktag=abx,any "
    "1x4x9x8:1x2x8x12:1x2x12x5",
    "--sdpa --qtag=acbd --ktag=abx,acdb --dtag=acbd --scale=div --mask=causal_top_left 2x4x8x8:2x4x8x8:2x4x8x8",
    '--lrn --tag=abx,axb,aBx8b --dir=FWD_D,FWD_I mb2ic16ih5_ls3alpha0.5k2 mb1ic20iw7_ls4beta0.6n"a"',
    "--lrn --tag=abx,axb,aBx8b --alg=WITHIN --mb=1 ic16ih5_ls3alpha0.5 ic3id2ih4iw3_ls2",
    "--lrn --dir=BWD_D --tag=abx,axb,aBx8b --alg=ACROSS,WITHIN mb2ic16ih5_ls3alpha0.5k2 mb1ic20ih3iw7_ls4beta0.6",
    "--resampling --dir=BWD_D --tag=abx,axb,aBx8b --alg=nearest,linear,cubic mb2ic16_ih5oh10 mb1ic19_ih9oh4",
    "--sdpa --dir=BWD_DW --mask=none,buffer,causal_bottom_right --ktag=abx,abdc 1x4x9x8:1x2x8x12:1x2x12x5",
    "--softmax --dir=BWD_D --stag=abx,axb,aBx8b --axis=1,-1 --alg=SOFTMAX,LOGSOFTMAX --inplace=false,true 2x19x3x5",
    "--prelu --dir=BWD_DW --stag=abx,axb,aBx8b --inplace=false,true 2x19x3x5:1x19x1x1 --inplace=false 2x16x5:2x16x5",
    "--pool --dir=BWD_D --tag=abx,axb,aBx8b --alg=max,avg_np,avg_p mb2ic16_ih12kh3sh2ph1 ic19iw14kw3sw2pw1",
    "--bnorm --dir=BWD_D,BWD_DW --flags=,CH,GC,GCH --tag=abx,axb --inplace=true,false mb2ic19ih4eps1e-3",
    "--bnorm --dir=BWD_D,BWD_DW --dt=f32,bf16 --flags=R,A,CHR,GCA --tag=abx,aBx8b mb2ic19ih4",
    "--bnorm --dir=BWD_DW --dt=bf16,f16 --flags=CH,GCH --tag=abx,axb,aBx8b mb2ic19ih4",
    "--gnorm --dir=BWD_D,BWD_DW --dt=f32,bf16 --flags=,CH,GCH --tag=abx,axb,aBx8b g2mb2ic18ih4",
    "--lnorm --dir=BWD_DW --dt=bf16,f16,bf16:f32 --flags=CH,GCH,CM --tag=abc,acb 2x5x19",
    "--lnorm --dir=FWD_D,BWD_DW --dt=f32,bf16 --ss_dt=bf16,f16 --flags=CH,GCH,CM 2x5x19",
    "--softmax --dir=BWD_D --sdt=bf16,f16 --ddt=bf16,f32 --stag=abx,axb --axis=1,-1 --alg=SOFTMAX,LOGSOFTMAX 2x19x3x5",
    "--prelu --dir=BWD_DW --sdt=bf16:bf16,f16:f16 --stag=abx,axb 2x19x3x5:1x19x1x1 2x16x5:2x16x5 2x16x5:1x1x1",
    "--lnorm --dir=BWD_D,BWD_DW --flags=,CH,GC,GCH,CM --tag=abx,axb,abc:bac 2x5x19 --inplace=true 2x5x19",
    "--cumsum --tag=abx,axb,aBx8b --axis=1,-1 --exclusive=true,false --reverse=true,false 2x16x3x5",
    "--topk --alg=max,min --k=1,3 --values=true,false --stag=abx,axb,aBx8b --axis=1,-1 2x16x3x5",
    "--topk --last=true --dtag=any,axb 3x19x4",
    "--prelu --stag=abx,axb,aBx8b --inplace=false,true --attr-post-ops=,sum:0.5 2x19x3x5:1x19x1x1 2x16x5:2x16x5",
]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("words", PROBLEMS)
@pytest.mark.one_in(3)
def test_problems_pass(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    driver, *rest = words.split()
    assert main(["bench", driver, "--mode=C", "--isa=avx2", "--threads=1", *rest]) == 0
    assert "failed:0" in capsys.readouterr().out
    for case in read(words):
        assert read(str(case)) == [case]


NARROW = [
    "--bnorm --dir=BWD_DW --dt=bf16 --flags=CHA --tag=axb mb2ic19ih4",
    "--gnorm --dir=BWD_DW --dt=bf16 --flags=CH g2mb3ic18ih9",
    "--lnorm --dir=BWD_DW --dt=f16 --flags=CH 9x5x19",
    "--softmax --dir=BWD_D --sdt=bf16 --ddt=bf16 --axis=1 2x19x3x5",
    "--prelu --dir=BWD_DW --sdt=bf16:bf16 9x19x3x5:1x19x1x1",
]


@pytest.mark.parametrize("words", NARROW)
def test_narrow_gradients(isa: str, words: str) -> None:
    """Proved, within the tolerance on every level, and equal for all numbers of threads."""
    (case,) = read(words)
    work = case.driver.work(case)
    (desc, attr), data = work.describe(), work.data(False)
    found = []
    for threads in (1, 2, 3, 7):
        engine = dnn.Engine(isa=isa, threads=threads)
        dnn.primitive_desc(desc, attr, engine).plan.check()
        found.append(Own(desc, attr, engine).compute(data))
    assert not judge(found[0], work.answer(data), False).reason
    assert len({x.tobytes() for x in found}) == 1


def test_keys_of_attention_are_columns() -> None:
    """Also where a head has as many keys as numbers in each, so that dims cannot tell."""
    for tag, strides in (("abx", (64, 64, 1, 8)), ("abdc", (64, 64, 8, 1))):
        (case,) = read(f"--sdpa --ktag={tag} 1x1x8x8:1x1x8x8:1x1x8x8")
        desc, _ = case.driver.work(case).describe()
        assert desc.key.strides == strides
    (case,) = read("--sdpa 1x1x4x16:1x1x8x16:1x1x8x16")  # keys as rows, which older versions took
    with pytest.raises(dnn.InvalidArguments, match="a head's keys are 8x16, they must be 16x8"):
        case.driver.work(case)
    (case,) = read("--sdpa --mask=causal_top_left 1x1x4x16:1x1x16x8:1x1x8x16")
    with pytest.raises(dnn.Unimplemented, match="of 4 queries and 8 keys is not built yet, causal_bottom_right is"):
        case.driver.work(case)


def test_problems_of_norms() -> None:
    assert parse("ic64ih56").dims == (2, 64, 56, 56)
    assert parse("mb1ic3id2ih4iw5").dims == (1, 3, 2, 4, 5)
    assert parse("g4mb8ic16").dims == (8, 16)
    assert parse('g4mb8ic16_eps0.5n"a*3"') == NormProblem((8, 16), 4, 0.5, "a*3")
    for text, says in (("mb2", "ic, the number of channels, is missing"), ("ic3kh2", "not 'kh2'")):
        with pytest.raises(dnn.InvalidArguments, match=says):
            parse(text)
