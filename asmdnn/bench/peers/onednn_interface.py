"""The part of oneDNN's C interface that is used, for cffi."""

CDEF = """
typedef void *handle;
typedef int64_t dim;
typedef struct { int major, minor, patch; const char *hash; unsigned cpu_runtime, gpu_runtime; } version;
typedef struct { int arg; handle memory; } argument;

const version *dnnl_version(void);
const char *dnnl_fmt_tag2str(int tag);
const char *dnnl_dt2str(int dtype);
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
int dnnl_primitive_attr_set_scales(handle attr, int arg, int mask, int ndims, const dim *groups, int dtype);
int dnnl_primitive_attr_set_zero_points(handle attr, int arg, int mask, int ndims, const dim *groups, int dtype);
int dnnl_primitive_attr_set_fpmath_mode(handle attr, int mode);
int dnnl_primitive_attr_set_fpmath_mode_v2(handle attr, int mode, int apply_to_int);
int dnnl_primitive_attr_set_accumulation_mode(handle attr, int mode);
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
int dnnl_convolution_backward_data_primitive_desc_create(handle *desc, handle engine, int alg, handle diff_src,
    handle weights, handle diff_dst, const dim *strides, const dim *dilations, const dim *padding_l,
    const dim *padding_r, handle hint_forward, handle attr);
int dnnl_convolution_backward_weights_primitive_desc_create(handle *desc, handle engine, int alg, handle src,
    handle diff_weights, handle diff_bias, handle diff_dst, const dim *strides, const dim *dilations,
    const dim *padding_l, const dim *padding_r, handle hint_forward, handle attr);
int dnnl_deconvolution_backward_data_primitive_desc_create(handle *desc, handle engine, int alg, handle diff_src,
    handle weights, handle diff_dst, const dim *strides, const dim *dilations, const dim *padding_l,
    const dim *padding_r, handle hint_forward, handle attr);
int dnnl_deconvolution_backward_weights_primitive_desc_create(handle *desc, handle engine, int alg, handle src,
    handle diff_weights, handle diff_bias, handle diff_dst, const dim *strides, const dim *dilations,
    const dim *padding_l, const dim *padding_r, handle hint_forward, handle attr);
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
int dnnl_resampling_backward_primitive_desc_create(handle *desc, handle engine, int alg, const float *factors,
    handle diff_src, handle diff_dst, handle hint_forward, handle attr);
int dnnl_pooling_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src,
    handle dst, const dim *strides, const dim *kernel, const dim *dilation, const dim *padding_l, const dim *padding_r,
    handle attr);
int dnnl_pooling_backward_primitive_desc_create(handle *desc, handle engine, int alg, handle diff_src, handle diff_dst,
    const dim *strides, const dim *kernel, const dim *dilation, const dim *padding_l, const dim *padding_r,
    handle hint_forward, handle attr);

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
int dnnl_softmax_backward_primitive_desc_create(handle *desc, handle engine, int alg, handle diff_src, handle diff_dst,
    handle dst, int axis, handle hint_forward, handle attr);
int dnnl_layer_normalization_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src,
    handle dst, handle statistics, float epsilon, unsigned flags, handle attr);
int dnnl_batch_normalization_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src,
    handle dst, float epsilon, unsigned flags, handle attr);
int dnnl_layer_normalization_backward_primitive_desc_create(handle *desc, handle engine, int prop_kind,
    handle diff_src, handle diff_dst, handle src, handle statistics, float epsilon, unsigned flags,
    handle hint_forward, handle attr);
int dnnl_batch_normalization_backward_primitive_desc_create(handle *desc, handle engine, int prop_kind,
    handle diff_src, handle diff_dst, handle src, float epsilon, unsigned flags, handle hint_forward, handle attr);
int dnnl_lrn_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int alg, handle src, handle dst,
    dim local_size, float alpha, float beta, float k, handle attr);
int dnnl_lrn_backward_primitive_desc_create(handle *desc, handle engine, int alg, handle diff_src, handle diff_dst,
    handle src, dim local_size, float alpha, float beta, float k, handle hint_forward, handle attr);
int dnnl_prelu_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, handle src, handle weights,
    handle dst, handle attr);
int dnnl_prelu_backward_primitive_desc_create(handle *desc, handle engine, handle src, handle weights,
    handle diff_src, handle diff_weights, handle diff_dst, handle hint_forward, handle attr);
int dnnl_reduction_primitive_desc_create(handle *desc, handle engine, int alg, handle src, handle dst, float p,
    float eps, handle attr);

void omp_set_num_threads(int count);
"""
