"""Loading oneDNN 3.x: its C interface through cffi, the cap of its ISA, and its OpenMP thread count."""

import sys
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from cffi import FFI

from asmdnn import environment
from asmdnn.bench.peers.onednn_rnn_functions import RNN_CDEF
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented

CDEF = """
typedef void *handle;
typedef int64_t dim;
typedef struct { int major, minor, patch; const char *hash; unsigned cpu_runtime, gpu_runtime; } version;
typedef struct { int arg; handle memory; } argument;

const version *dnnl_version(void);
const char *dnnl_fmt_tag2str(int tag);
int dnnl_set_max_cpu_isa(int isa);
int dnnl_engine_create(handle *engine, int kind, size_t index);
int dnnl_stream_create(handle *stream, handle engine, unsigned flags);
int dnnl_stream_wait(handle stream);

int dnnl_memory_desc_create_with_tag(handle *desc, int ndims, const dim *dims, int dtype, int tag);
int dnnl_memory_desc_create_with_strides(handle *desc, int ndims, const dim *dims, int dtype, const dim *strides);
size_t dnnl_memory_desc_get_size(handle desc);
int dnnl_memory_desc_destroy(handle desc);
int dnnl_memory_create(handle *memory, handle desc, handle engine, void *data);
int dnnl_memory_destroy(handle memory);

int dnnl_primitive_attr_create(handle *attr);
int dnnl_primitive_attr_set_post_ops(handle attr, handle post_ops);
int dnnl_primitive_attr_set_scales_mask(handle attr, int arg, int mask);
int dnnl_primitive_attr_set_zero_points_mask(handle attr, int arg, int mask);
int dnnl_primitive_attr_destroy(handle attr);
int dnnl_post_ops_create(handle *post_ops);
int dnnl_post_ops_append_eltwise(handle post_ops, int alg, float alpha, float beta);
int dnnl_post_ops_append_sum(handle post_ops, float scale, int32_t zero_point, int dtype);
int dnnl_post_ops_append_binary(handle post_ops, int alg, handle src1);
int dnnl_post_ops_append_prelu(handle post_ops, int mask);
int dnnl_post_ops_append_dw(handle post_ops, int weights_dtype, int bias_dtype, int dst_dtype, dim kernel, dim stride,
    dim padding_l);
int dnnl_post_ops_destroy(handle post_ops);

handle dnnl_primitive_desc_query_md(handle desc, int what, int index);
int dnnl_primitive_desc_query(handle desc, int what, int index, void *result);
int dnnl_primitive_desc_destroy(handle desc);
int dnnl_primitive_create(handle *primitive, handle desc);
int dnnl_primitive_destroy(handle primitive);
int dnnl_primitive_execute(handle primitive, handle stream, int count, const argument *arguments);

int dnnl_reorder_primitive_desc_create(handle *desc, handle src, handle src_engine, handle dst, handle dst_engine,
                                       handle attr);
int dnnl_convolution_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src,
    handle weights, handle bias, handle dst, const dim *strides, const dim *dilations, const dim *padding_l,
    const dim *padding_r, handle attr);
int dnnl_deconvolution_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src,
    handle weights, handle bias, handle dst, const dim *strides, const dim *dilations, const dim *padding_l,
    const dim *padding_r, handle attr);
int dnnl_shuffle_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src, handle dst,
    int axis, dim group_size, handle attr);
int dnnl_shuffle_backward_primitive_desc_create(handle *desc, handle engine, handle diff_src, handle diff_dst,
    int axis, dim group_size, handle hint_forward, handle attr);
int dnnl_eltwise_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src,
    handle dst, float alpha, float beta, handle attr);
int dnnl_eltwise_backward_primitive_desc_create(handle *desc, handle engine, int alg, handle diff_src, handle diff_dst,
    handle data, float alpha, float beta, handle hint_forward, handle attr);
int dnnl_binary_primitive_desc_create(handle *desc, handle engine, int alg, handle src0, handle src1, handle dst,
    handle attr);
int dnnl_concat_primitive_desc_create(handle *desc, handle engine, handle dst, int count, int axis, const handle *srcs,
    handle attr);
int dnnl_sum_primitive_desc_create(handle *desc, handle engine, handle dst, int count, const float *scales,
    const handle *srcs, handle attr);
int dnnl_resampling_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg,
    const float *factors, handle src, handle dst, handle attr);
int dnnl_pooling_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src,
    handle dst, const dim *strides, const dim *kernel, const dim *dilation, const dim *padding_l, const dim *padding_r,
    handle attr);

int dnnl_matmul_primitive_desc_create(handle *desc, handle engine, handle src, handle weights, handle bias, handle dst,
    handle attr);
int dnnl_inner_product_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src,
    handle weights, handle bias, handle dst, handle attr);
int dnnl_inner_product_backward_data_primitive_desc_create(handle *desc, handle engine, handle diff_src,
    handle weights, handle diff_dst, handle hint_forward, handle attr);
int dnnl_inner_product_backward_weights_primitive_desc_create(handle *desc, handle engine, handle src,
    handle diff_weights, handle diff_bias, handle diff_dst, handle hint_forward, handle attr);

int dnnl_softmax_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src,
    handle dst, int axis, handle attr);
int dnnl_layer_normalization_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src,
    handle dst, handle statistics, float epsilon, unsigned flags, handle attr);
int dnnl_batch_normalization_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src,
    handle dst, float epsilon, unsigned flags, handle attr);
int dnnl_lrn_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src, handle dst,
    dim local_size, float alpha, float beta, float k, handle attr);
int dnnl_prelu_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src, handle weights,
    handle dst, handle attr);
int dnnl_reduction_primitive_desc_create(handle *desc, handle engine, int alg, handle src, handle dst, float p,
    float eps, handle attr);

void omp_set_num_threads(int count);
"""
STATUS = ("success", "out of memory", "invalid arguments", "unimplemented", "last implementation", "runtime error")
REFUSED = (2, 3)  # a combination that oneDNN does not define is an invalid argument
CPU_ENGINE, IN_ORDER = 1, 1
OPENMP_RUNTIME = 2
OPENMP_LIBRARIES = ("libgomp.so.1", "libiomp5.so", "libomp.so.5")
MAX_CPU_ISA = {
    "avx2": 0x7,
    "avx2_vnni": 0xF,
    "avx512_core": 0x27,
    "avx512_core_vnni": 0x67,
    "avx512_core_bf16": 0xE7,
    "avx512_core_fp16": 0x1EF,
    "avx512_core_amx": 0xFEF,
}

ffi = FFI()
ffi.cdef(CDEF + RNN_CDEF)


class Onednn:
    """The loaded library.  `lib` are its functions, `engine` and `stream` its CPU, `version` its number as text."""

    def __init__(self, path: str, lib: Any) -> None:
        self.path = path
        self.lib = lib
        self._isa = ""
        self._openmp: Any = None
        number = lib.dnnl_version()
        if number.major != 3:
            raise AsmdnnError(f"{path} is oneDNN {number.major}.{number.minor}, bench needs version 3")
        self.version = f"{number.major}.{number.minor}.{number.patch}"
        self._tags: dict[str, int] = {}
        if number.cpu_runtime == OPENMP_RUNTIME:
            self._openmp = _loaded_openmp()
        self.engine = self.new(lib.dnnl_engine_create, CPU_ENGINE, 0)
        self.stream = self.new(lib.dnnl_stream_create, self.engine, IN_ORDER)

    def check(self, status: int, what: str) -> None:
        """Raise Unimplemented or AsmdnnError when `status` is not success."""
        if status:
            reason = STATUS[status] if status < len(STATUS) else f"status {status}"
            error = Unimplemented if status in REFUSED else AsmdnnError
            raise error(f"onednn: {what}: {reason}")

    def new(self, create: Any, *arguments: Any) -> Any:
        """The handle that a function which stores it through its first parameter creates."""
        handle = ffi.new("handle *")
        self.check(create(handle, *arguments), "creation")
        return handle[0]

    def cap_isa(self, name: str) -> None:
        """Restrict oneDNN to the instructions of `name`; the library takes this once, before its first primitive."""
        if self._isa == name:
            return
        if self._isa:
            raise InvalidArguments(
                f"--isa={name}: the peer onednn is already held to {self._isa}, which is final within a process; "
                "use one process for each ISA"
            )
        if name not in MAX_CPU_ISA:
            raise InvalidArguments(f"--isa={name}: the peer onednn can only be held to {', '.join(MAX_CPU_ISA)}")
        self.check(self.lib.dnnl_set_max_cpu_isa(MAX_CPU_ISA[name]), f"holding it to {name}")
        self._isa = name

    def tags(self) -> dict[str, int]:
        """The number of every format tag by its letters; they differ between versions."""
        if not self._tags:
            for number in count():
                name = ffi.string(self.lib.dnnl_fmt_tag2str(number)).decode()
                if name.startswith("unknown"):
                    break
                self._tags[name] = number
        return self._tags

    def set_threads(self, number: int) -> None:
        """Threads of the next calls from this thread."""
        if self._openmp is None:
            raise AsmdnnError(f"the thread count of {self.path} cannot be set: use an OpenMP build, onednn-cpu-gomp")
        self._openmp.omp_set_num_threads(number)


@lru_cache(maxsize=1)
def load() -> Onednn:
    """oneDNN from $ONEDNN_LIB, else from this Python environment, else from the system.

    Raises AsmdnnError that names the extra to install.
    """
    chosen = environment.path("ONEDNN_LIB")
    candidates = [str(chosen)] if chosen else [str(Path(sys.prefix, "lib", "libdnnl.so.3")), "libdnnl.so.3"]
    problem: object = None
    for path in candidates:
        try:
            return Onednn(path, ffi.dlopen(path))
        except (OSError, AttributeError) as error:
            problem = error
    raise AsmdnnError(
        f"--peer=onednn: no oneDNN 3 library ({str(problem).splitlines()[0]}); "
        "run pip install 'asmdnn[bench]', or point ONEDNN_LIB at a libdnnl.so.3"
    )


def _loaded_openmp() -> Any:
    """The OpenMP runtime that came into the process with the library."""
    maps = Path("/proc/self/maps").read_text()
    for name in OPENMP_LIBRARIES:
        if name in maps:
            return ffi.dlopen(name)
    return None
