"""The drivers of softmax and norms: problems pass, and cases repeat."""

import pytest

from asmdnn.cli.main import main
from tests.bench.test_drivers import read

PROBLEMS = [
    "--softmax --stag=abx,axb --axis=1,-1 --alg=SOFTMAX,LOGSOFTMAX --inplace=false,true 2x19x3x5",
    "--softmax --stag=aBx8b --dtag=any,abx --attr-post-ops=linear:2:1+add:f32:per_oc 2x16x3x5",
    "--lnorm --tag=abx,axb --flags=,CH,GC,M --inplace=false,true 3x19",
    "--lnorm --dir=FWD_I --flags=CHM,H --attr-post-ops=linear:2:1+add:f32:per_oc 2x3x40",
    "--reduction --alg=sum,max,norm_lp_sum --p=1,3 --eps=0.5 --stag=abx,axb,aBx8b 2x16x3x5:2x16x1x1 2x19x3x5:1x1x3x1",
]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("words", PROBLEMS)
def test_problems_pass(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    driver, *rest = words.split()
    assert main(["bench", driver, "--mode=C", "--isa=avx2", "--threads=1", *rest]) == 0
    assert "failed:0" in capsys.readouterr().out
    for case in read(words):
        assert read(str(case)) == [case]
