"""Layers with gradients by this library's kernels: functions of f32 tensors of the CPU, as in torch.nn.functional.

Tensors cross both ways without copies: kernels read torch's memory (DLPack), and a result's memory is torch's.
torch is imported by the first call; without it calls raise Unimplemented.
"""

from asmdnn.torch.images import avg_pool2d as avg_pool2d
from asmdnn.torch.images import conv1d as conv1d
from asmdnn.torch.images import conv2d as conv2d
from asmdnn.torch.images import conv3d as conv3d
from asmdnn.torch.images import conv_transpose1d as conv_transpose1d
from asmdnn.torch.images import conv_transpose2d as conv_transpose2d
from asmdnn.torch.images import conv_transpose3d as conv_transpose3d
from asmdnn.torch.images import local_response_norm as local_response_norm
from asmdnn.torch.images import max_pool2d as max_pool2d
from asmdnn.torch.rows import layer_norm as layer_norm
from asmdnn.torch.rows import log_softmax as log_softmax
from asmdnn.torch.rows import rms_norm as rms_norm
from asmdnn.torch.rows import scaled_dot_product_attention as scaled_dot_product_attention
from asmdnn.torch.rows import softmax as softmax
