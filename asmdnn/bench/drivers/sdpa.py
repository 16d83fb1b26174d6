"""`--sdpa`: scaled dot-product attention; oneDNN's side is a product, a softmax and another product.

Problems are benchdnn's: dims of queries (n, heads, rows, d), of keys as the product takes them (n, groups, d, keys),
and of values (n, groups, keys, e).
"""

from asmdnn.bench.attention_work import BUFFERS, CAUSAL, SUMS, SdpaGradientWork, SdpaSettings, SdpaWork
from asmdnn.bench.dims import dims_problem
from asmdnn.bench.driver import Driver, by_direction
from asmdnn.bench.tensor_work import PROP_KINDS
from asmdnn.bench.titles import titled
from asmdnn.bench.words import data_type, direction, one_of, option, tag

TYPES = ("f32", "bf16", "f16")


def _types(word: str) -> str:
    """One for all, or those of query, key, value and dst."""
    given = word.lower().split(":")
    if len(given) != 4:
        return data_type(*TYPES)(word)
    names = [data_type(*TYPES)(name) for name in given]
    return names[0] if len({*names}) == 1 else ":".join(names)


DRIVER = Driver(
    "sdpa",
    SdpaSettings(),
    {
        "dir": option(direction(*PROP_KINDS, "BWD_DW"),
                      "FWD_I inference (default), FWD_D training, BWD_DW all gradients"),
        "dt": option(_types, "f32 (default), bf16, f16; or four, of query, key, value and dst"),
        "qtag": option(tag, "layout of queries: abx (default), acbd, ..."),
        "ktag": option(tag, "of keys, whose last dim is their number; abdc: each key is dense"),
        "vtag": option(tag, "of values"),
        "dtag": option(tag, "of dst"),
        "mask": option(one_of("none", *BUFFERS, *CAUSAL), f"none (default), {', '.join((*BUFFERS, *CAUSAL))}"),
        "mdt": option(data_type("f32"), "data type of the mask: f32"),
        "stats": option(one_of("none", SUMS), "logsumexp: left by the forward pass, read by BWD_DW; none (default)"),
        "scale": option(one_of("library", "mul", "div"), "who says 1 / sqrt(d): library (default), mul or div"),
    },
    dims_problem(3),
    by_direction(SdpaWork, SdpaGradientWork),
    example="--mode=CP --threads=1 --peer=onednn --ktag=abdc 1x12x512x64:1x12x64x512:1x12x512x64",
    title=titled("{dims} {given_dt}{given_mask}{given_stats}"),
    bandwidth_bound=False,
)  # fmt: skip
