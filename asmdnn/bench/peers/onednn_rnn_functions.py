"""The functions of oneDNN's C interface that describe recurrent layers."""

RNN_CDEF = """
int dnnl_primitive_attr_set_rnn_data_qparams(handle attr, float scale, float shift);
int dnnl_primitive_attr_set_rnn_weights_qparams(handle attr, dim count, int mask, const float *scales);
int dnnl_vanilla_rnn_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int activation,
    int direction, handle src_layer, handle src_iter, handle weights_layer, handle weights_iter, handle bias,
    handle dst_layer, handle dst_iter, unsigned flags, float alpha, float beta, handle attr);
int dnnl_vanilla_rnn_backward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int activation,
    int direction, handle src_layer, handle src_iter, handle weights_layer, handle weights_iter, handle bias,
    handle dst_layer, handle dst_iter, handle diff_src_layer, handle diff_src_iter, handle diff_weights_layer,
    handle diff_weights_iter, handle diff_bias, handle diff_dst_layer, handle diff_dst_iter, unsigned flags,
    float alpha, float beta, handle hint_forward, handle attr);
int dnnl_lstm_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int direction,
    handle src_layer, handle src_iter, handle src_iter_c, handle weights_layer, handle weights_iter,
    handle weights_peephole, handle weights_projection, handle bias, handle dst_layer, handle dst_iter,
    handle dst_iter_c, unsigned flags, handle attr);
int dnnl_lstm_backward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int direction,
    handle src_layer, handle src_iter, handle src_iter_c, handle weights_layer, handle weights_iter,
    handle weights_peephole, handle weights_projection, handle bias, handle dst_layer, handle dst_iter,
    handle dst_iter_c, handle diff_src_layer, handle diff_src_iter, handle diff_src_iter_c,
    handle diff_weights_layer, handle diff_weights_iter, handle diff_weights_peephole,
    handle diff_weights_projection, handle diff_bias, handle diff_dst_layer, handle diff_dst_iter,
    handle diff_dst_iter_c, unsigned flags, handle hint_forward, handle attr);
int dnnl_gru_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int direction,
    handle src_layer, handle src_iter, handle weights_layer, handle weights_iter, handle bias, handle dst_layer,
    handle dst_iter, unsigned flags, handle attr);
int dnnl_gru_backward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int direction,
    handle src_layer, handle src_iter, handle weights_layer, handle weights_iter, handle bias, handle dst_layer,
    handle dst_iter, handle diff_src_layer, handle diff_src_iter, handle diff_weights_layer,
    handle diff_weights_iter, handle diff_bias, handle diff_dst_layer, handle diff_dst_iter, unsigned flags,
    handle hint_forward, handle attr);
int dnnl_lbr_gru_forward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int direction,
    handle src_layer, handle src_iter, handle weights_layer, handle weights_iter, handle bias, handle dst_layer,
    handle dst_iter, unsigned flags, handle attr);
int dnnl_lbr_gru_backward_primitive_desc_create(handle *desc, handle engine, int prop_kind, int direction,
    handle src_layer, handle src_iter, handle weights_layer, handle weights_iter, handle bias, handle dst_layer,
    handle dst_iter, handle diff_src_layer, handle diff_src_iter, handle diff_weights_layer,
    handle diff_weights_iter, handle diff_bias, handle diff_dst_layer, handle diff_dst_iter, unsigned flags,
    handle hint_forward, handle attr);
"""
