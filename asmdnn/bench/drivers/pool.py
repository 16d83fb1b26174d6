"""`--pool`: the largest or the mean of windows."""

from asmdnn.bench.attributes import options
from asmdnn.bench.driver import Driver, by_direction
from asmdnn.bench.pool_problem import parse_problem
from asmdnn.bench.pool_work import ALGORITHMS, PoolGradientWork, PoolSettings, PoolWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import DT, IMAGES, LAYOUT, after, data_type, direction, one_of, option, renamed

ALG = renamed({long: short for short, long in ALGORITHMS.items()}, one_of(*ALGORITHMS))
DRIVER = Driver(
    "pool",
    PoolSettings(),
    {
        "dir": option(direction("FWD_D", "FWD_I", "BWD_D"),
                      "FWD_I inference (default), FWD_D training: with indices, BWD_D backward"),
        "dt": DT,
        "cfg": option(data_type(), "the same in older words", field="dt", describes=False),
        "tag": LAYOUT,
        "alg": option(after("pooling_", ALG), "max (default), avg_np without padding, avg_p with it"),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "mb": IMAGES,
        "places": option(one_of("s32", "u8"),
                         "indices of maxima: s32 in a plane (default), or u8 in the window, as oneDNN's"),
    },
    parse_problem,
    by_direction(PoolWork, PoolGradientWork),
    example="--mode=CP --tag=abx,axb --alg=max,avg_np --threads=1 --peer=onednn mb1ic64ih112kh3sh2ph1",
    notation='mb1ic64ih112kh3sh2ph1n"name"',
    title=titled("{alg} {backward}{types}{tag} {problem}"),
)  # fmt: skip
