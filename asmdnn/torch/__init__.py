"""Layers with gradients by this library's kernels: functions of f32 tensors of the CPU, as in torch.nn.functional.

Tensors cross both ways without copies: kernels read torch's memory (DLPack), and a result's memory is torch's.
torch is imported by the first call; without it calls raise Unimplemented.
"""

from asmdnn.torch.channels import batch_norm as batch_norm
from asmdnn.torch.channels import group_norm as group_norm
from asmdnn.torch.channels import instance_norm as instance_norm
from asmdnn.torch.channels import local_response_norm as local_response_norm
from asmdnn.torch.channels import prelu as prelu
from asmdnn.torch.elements import elu as elu
from asmdnn.torch.elements import gelu as gelu
from asmdnn.torch.elements import hardsigmoid as hardsigmoid
from asmdnn.torch.elements import hardswish as hardswish
from asmdnn.torch.elements import leaky_relu as leaky_relu
from asmdnn.torch.elements import mish as mish
from asmdnn.torch.elements import relu as relu
from asmdnn.torch.elements import relu6 as relu6
from asmdnn.torch.elements import sigmoid as sigmoid
from asmdnn.torch.elements import silu as silu
from asmdnn.torch.elements import softplus as softplus
from asmdnn.torch.elements import tanh as tanh
from asmdnn.torch.images import conv1d as conv1d
from asmdnn.torch.images import conv2d as conv2d
from asmdnn.torch.images import conv3d as conv3d
from asmdnn.torch.images import conv_transpose1d as conv_transpose1d
from asmdnn.torch.images import conv_transpose2d as conv_transpose2d
from asmdnn.torch.images import conv_transpose3d as conv_transpose3d
from asmdnn.torch.products import embedding as embedding
from asmdnn.torch.products import linear as linear
from asmdnn.torch.rows import layer_norm as layer_norm
from asmdnn.torch.rows import log_softmax as log_softmax
from asmdnn.torch.rows import rms_norm as rms_norm
from asmdnn.torch.rows import scaled_dot_product_attention as scaled_dot_product_attention
from asmdnn.torch.rows import softmax as softmax
from asmdnn.torch.windows import adaptive_avg_pool1d as adaptive_avg_pool1d
from asmdnn.torch.windows import adaptive_avg_pool2d as adaptive_avg_pool2d
from asmdnn.torch.windows import adaptive_avg_pool3d as adaptive_avg_pool3d
from asmdnn.torch.windows import avg_pool1d as avg_pool1d
from asmdnn.torch.windows import avg_pool2d as avg_pool2d
from asmdnn.torch.windows import avg_pool3d as avg_pool3d
from asmdnn.torch.windows import interpolate as interpolate
from asmdnn.torch.windows import max_pool1d as max_pool1d
from asmdnn.torch.windows import max_pool2d as max_pool2d
from asmdnn.torch.windows import max_pool3d as max_pool3d
