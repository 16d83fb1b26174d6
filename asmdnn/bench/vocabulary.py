"""benchdnn's words beside the options of this library's drivers, so that oneDNN's files can be read as they are.

NO_EFFECT are options that change nothing here.  NEUTRAL are options of oneDNN's attributes and descriptors that no
driver here has, or not each: words that match ask for nothing, all others for what is not built yet.  Names are written
with - where benchdnn has - or _.  Of data types nf4 is this library's own.
"""

from typing import Final

ALL_DATA_TYPES: Final = frozenset(
    ("f64", "f32", "tf32", "f16", "bf16", "f8_e5m2", "f8_e4m3", "e8m0", "f4_e2m1", "f4_e3m0",
     "s64", "s32", "s16", "s8", "s4", "u8", "u4", "boolean", "undef", "nf4")
)  # fmt: skip
DIRECTIONS: Final = ("FWD_B", "FWD_D", "FWD_I", "BWD_D", "BWD_W", "BWD_WB", "BWD_DW")

DRIVERS: Final = (
    "binary", "bnorm", "brgemm", "concat", "conv", "deconv", "eltwise", "gated_mlp", "gnorm", "graph", "ip", "lnorm",
    "lrn", "matmul", "pool", "prelu", "reduction", "reorder", "resampling", "rnn", "sdpa", "self", "shuffle", "softmax",
    "sum", "zeropad",
)  # fmt: skip
PROBLEM_OPTION: Final = {"graph": "case"}  # where a driver's problems are an option's values

NO_EFFECT: Final = frozenset(
    (
        # Permission for what is not done here: less precision, slower kernels, other checks.
        "allow-enum-tags-only", "allow-unimpl", "attr-denormals", "attr-deterministic", "attr-fpmath",
        "attr-same-pd-check", "attr-scratchpad", "check-ref-impl", "fast-ref", "fast-ref-gpu", "use-fast-ref",
        # What measuring looks like.
        "canonical", "cold-cache", "perf-template",
        # Other engines, threading and API.
        "cpu-isa-hints", "ctx-init", "execution-mode", "memory-kind", "mode-modifier", "num-streams", "stream-kind",
        # Dims that a primitive gets to know when it runs: here one is planned, and kept, for each shape.
        "runtime-dim-mask", "runtime-dims-masks", "runtime-k", "runtime-m", "runtime-mb", "runtime-n",
        # Scales for a reorder whose scale is 0.
        "def-scales",
    )
)  # fmt: skip

NEUTRAL: Final = {
    "attr-acc-mode": "strict|relaxed|any|f32",
    "attr-dropout": "",
    "attr-irmode": "nearest",
    "attr-oscale": "",
    "attr-post-ops": "",
    "attr-precomputed-reductions": "",
    "attr-rounding-mode": r"\w+:environment(\+\w+:environment)*",
    "attr-scales": "",
    "attr-zero-points": "",
    "cross-engine": "none",
    "encoding": ":+",
    "grouped": "",
    "flags": "O",  # of --rnn: gradients of weights replace what is there, as they do here
    "scaling-proj": "",
    "skip-nonlinear": "false",
    "sparse-options": ":+",
    "strides": ":+",
}
