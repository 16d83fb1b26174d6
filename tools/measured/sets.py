"""The problem sets of a record: what each row is called, the page that explains it, and the words of `asmdnn bench`."""

from typing import Final, NamedTuple


class ProblemSet(NamedTuple):
    """A row of a page.  words: of `asmdnn bench`, but for mode, level, threads, peer and time."""

    title: str
    page: str
    words: str


SETS: Final = (
    ProblemSet("convolutions of ResNet-50", "convolution", "--conv --dir=FWD_I --mb=1 --batch=resnet_50"),
    ProblemSet("the same, 16 images", "convolution", "--conv --dir=FWD_I --mb=16 --batch=resnet_50"),
    ProblemSet(
        "the same, channels last", "convolution", "--conv --dir=FWD_I --mb=1 --stag=axb --dtag=axb --batch=resnet_50"
    ),
    ProblemSet(
        "the same in bf16",
        "convolution",
        "--conv --dir=FWD_I --mb=1 --dt=bf16 --stag=axb --dtag=axb --batch=resnet_50",
    ),
    ProblemSet(
        "the same in u8",
        "convolution",
        "--conv --dir=FWD_I --mb=1 --dt=u8:s8:u8 --stag=axb --dtag=axb --batch=resnet_50",
    ),
    ProblemSet("MobileNet V1", "convolution", "--conv --dir=FWD_I --mb=1 --batch=mobilenet_v1"),
    ProblemSet("MobileNet V2", "convolution", "--conv --dir=FWD_I --mb=1 --batch=mobilenet_v2"),
    ProblemSet("EfficientNet B0", "convolution", "--conv --dir=FWD_I --mb=1 --batch=efficientnet_b0"),
    ProblemSet("ResNeXt-50 32x4d", "convolution", "--conv --dir=FWD_I --mb=1 --batch=resnext50_32x4d"),
    ProblemSet("VGG 16", "convolution", "--conv --dir=FWD_I --mb=1 --batch=vgg_16"),
    ProblemSet("few output channels", "convolution", "--conv --dir=FWD_I --batch=last_layers"),
    ProblemSet("3x3, Winograd where faster", "winograd", "--conv --dir=FWD_I --alg=auto --mb=1 --batch=winograd"),
    ProblemSet("3x3 in groups", "winograd", "--conv --dir=FWD_I --alg=auto --mb=1 --batch=winograd_groups"),
    ProblemSet(
        "deconvolutions", "deconvolution", "--deconv --dir=FWD_I --mb=1 --batch=db_head --batch=unet --batch=dcgan"
    ),
    ProblemSet("matmul, weights in any format", "matmul", "--matmul --batch=matmul_any"),
    ProblemSet("matmul, row-major weights", "matmul", "--matmul --batch=matmul_plain"),
    ProblemSet("matmul, deep, few columns", "matmul", "--matmul --batch=matmul_deep"),
    ProblemSet("inner products", "matmul", "--ip --dir=FWD_I --batch=ip"),
    ProblemSet("LSTM", "recurrent", "--rnn --batch=rnn_lstm"),
    ProblemSet("GRU", "recurrent", "--rnn --batch=rnn_gru"),
    ProblemSet("attention", "attention", "--sdpa --batch=sdpa_networks"),
    ProblemSet("softmax", "softmax", "--softmax --batch=softmax_networks"),
    ProblemSet("layer norm", "normalization", "--lnorm --batch=lnorm_networks"),
    ProblemSet("batch norm", "normalization", "--bnorm --batch=bnorm_networks"),
    ProblemSet("local response norm", "normalization", "--lrn --batch=lrn_networks"),
    ProblemSet("pooling", "pooling", "--pool --batch=pool_networks"),
    ProblemSet("resampling", "resampling", "--resampling --batch=resampling_networks"),
    ProblemSet("reductions", "reduction", "--reduction --batch=reduction_networks"),
    ProblemSet("element-wise functions", "eltwise", "--eltwise --batch=eltwise_all"),
    ProblemSet("binary operations", "eltwise", "--binary --batch=binary_all"),
    ProblemSet("PReLU", "eltwise", "--prelu --batch=prelu_networks"),
    ProblemSet("concat", "concat", "--concat --batch=concat_networks"),
    ProblemSet("sums", "concat", "--sum --batch=sum_networks"),
    ProblemSet("reorder, f32", "reorder", "--reorder --batch=reorder_f32"),
    ProblemSet("reorder, f32 to and from bytes", "reorder", "--reorder --batch=reorder_int8"),
    ProblemSet("reorder, f32 to and from bf16", "reorder", "--reorder --batch=reorder_bf16"),
    ProblemSet("shuffle, f32", "shuffle", "--shuffle --tag=abx,axb,aBx8b,aBx16b --batch=shufflenet"),
)
