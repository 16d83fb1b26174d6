"""What each number that `asmdnn tune --machine` measures is tried on: problems whose plans it decides, and threads.

A few of different sizes: a number is kept if it gains where plans differ, and loses nowhere among them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """Problems in the words of the bench, and the fewest threads of a machine on which they say anything."""

    words: tuple[str, ...]
    threads: int = 1


def _trial(words: str, threads: int = 1) -> Trial:
    return Trial((*words.split(),), threads)


_REORDERS: Final = "--reorder --stag=abx --dtag=axb,aBx16b 1x64x56x56 1x512x14x14 --stag=axb --dtag=abx 1x256x28x28"
_PARTS: Final = "--reorder --sdt=bf16 --ddt=bf16 --stag=abx --dtag=aBx16b 1x64x56x56 1x512x14x14 2x96x28x28"
_TRANSPOSES: Final = "--reorder --stag=ab --dtag=ba 512x512 1000x1024 --stag=abx --dtag=axb 1x256x28x28 1x512x14x14"
_CONVERSIONS: Final = "--reorder --sdt=f32 --ddt=s8,bf16 --stag=abx --dtag=axb 1x64x56x56 1x512x14x14"
_WIDENINGS: Final = "--reorder --sdt=bf16,s8 --ddt=f32 --stag=abx --dtag=abx 1x64x56x56 4x64x56x56"
_LARGE_REORDERS: Final = (
    "--reorder --stag=abx --dtag=axb,aBx16b 8x64x56x56 16x64x56x56 16x512x14x14 --sdt=bf16 --dtag=abx 16x64x56x56"
)
_LARGE_SHUFFLES: Final = "--shuffle --dt=f32 --tag=axb,aBx16b --axis=1 --group=3 16x960x7x7 16x480x14x14 16x240x28x28"
_SHUFFLES: Final = "--shuffle --dt=f32 --tag=axb,aBx16b --axis=1 --group=2,4,60 1x480x14x14 1x240x28x28"
_FUNCTIONS: Final = "--eltwise --alg=relu,tanh 2x64x112x112 3x64x112x112 6x64x112x112"
_WEIGHTS_OF_CHANNELS: Final = (
    "--prelu --dir=FWD_I --stag=abx:abx 8x64x112x112:1x64x1x1 "
    "--sdt=bf16:bf16 8x64x112x112:1x64x1x1 4x512x64x118:1x512x1x1"
)
_CHAINS: Final = "--eltwise --alg=gelu_erf,tanh,logistic 1x64x28x28 --alg=relu,gelu_erf 8x64x112x112"
_TEAMS: Final = "--eltwise --alg=relu,gelu_erf 1x64x14x14 1x64x28x28 --reorder --stag=abx --dtag=axb 1x64x28x28"
_WIDE_DST: Final = "--conv --dir=FWD_I mb1ic3ih224oc32oh112kh3sh2ph1 g32mb4ic32ih112oc32oh112kh3ph1"
_PANELS: Final = "--conv --dir=FWD_I mb1ic256ih14oc256oh14kh3ph1 mb1ic128ih28oc128oh28kh3ph1 mb1ic512ih7oc512oh7kh3ph1"
_PLANES: Final = (
    "--conv --dir=FWD_I --stag=abx --dtag=abx mb16ic64ih14oc128oh14kh1 mb4ic256ih14oc256oh14kh1 mb16ic256ih7oc64oh7kh1"
)
_MANY_IMAGES: Final = "--conv --dir=FWD_I mb16ic64ih56oc256oh56kh1 mb16ic512ih28oc128oh28kh1 mb4ic1024ih14oc256oh14kh1"
_SOME_IMAGES: Final = "--conv --dir=FWD_I mb2ic64ih56oc256oh56kh1 mb4ic64ih56oc64oh56kh1 mb8ic256ih28oc64oh28kh1"
_LARGE_PIXELS: Final = (
    "--conv --dir=FWD_I --stag=axb --dtag=axb mb4ic192ih56oc32oh56kh1 mb1ic256ih56oc64oh56kh1 mb4ic512ih28oc128oh28kh1"
)
_FAR_PIXELS: Final = (
    "--conv --dir=FWD_I --stag=axb --dtag=axb mb2ic3ih56oc160oh56kh3ph1 mb1ic16ih160oc64oh160kh1 "
    "mb8ic128ih28oc512oh28kh1"
)
_SHORT_PIXELS: Final = (
    "--conv --dir=FWD_I --stag=axb --dtag=axb mb2ic8ih112oc512oh112kh1 mb2ic16ih112oc256oh112kh1 "
    "mb4ic3ih56oc256oh56kh1 --dt=bf16 mb1ic16ih224oc128oh224kh1"
)
_FAR_MAXIMA: Final = (
    "--pool --dir=BWD_D --alg=max --tag=axb mb1ic256ih80oh78kh3ph0 mb4ic512ih28oh28kh5ph2 mb1ic64ih160oh158kh3ph0"
)
_FAR_ROWS: Final = (
    "--conv --dir=FWD_I --stag=axb --dtag=axb g144mb4ic144ih56oc144oh56kh3ph1 g96mb2ic96ih112oc96oh56kh3sh2ph1 "
    "g320mb1ic320ih80oc320oh80kh3ph1"
)
_STRIDES: Final = "--conv --dir=FWD_I mb16ic256ih56oc128oh28kh1sh2 mb16ic512ih28oc256oh14kh1sh2"
_WINDOWS: Final = "--conv --dir=FWD_I --stag=axb,any mb8ic128ih56oc128oh28kh3sh2ph1 mb1ic320ih112oc72oh56kh2sh2"
_LARGE_TILES: Final = "--conv --dir=FWD_I --stag=axb --dtag=axb mb8ic16ih112oc96oh112kh1 mb16ic24ih56oc144oh56kh1"
_LARGE_PARTS: Final = (
    "--deconv --dir=FWD_I mb1ic64ih184iw320oc64oh368ow640kh2kw2sh2sw2ph0pw0 mb2ic64ih160oc64oh320kh2sh2"
)
_GROUPS_OF_16: Final = "--conv --dir=FWD_I g32mb1ic512ih28oc512oh14kh3sh2ph1 g32mb1ic1024ih14oc1024oh7kh3sh2ph1"
_GROUPS_OF_8: Final = "--conv --dir=FWD_I g32mb1ic256ih56oc256oh28kh3sh2ph1 g32mb1ic256ih28oc256oh14kh3sh2ph1"
_HALF_VECTORS: Final = "--conv --dir=FWD_I mb1ic64ih56oc8oh56kh3ph1 mb1ic144ih56oc24oh56kh1 mb1ic240ih28oc40oh28kh1"
_PRODUCTS: Final = "--matmul 256x3072:3072x768 1024x1024:1024x1024"
_LARGE_DST: Final = "--matmul 384x64:64x3072 1000x192:192x1536 2000x16:16x2000 300x256:256x2048"
_STREAMED: Final = "--matmul --wtag=any 512x1024:1024x4096 2048x256:256x1024 --dt=u8:s8:s32 512x1024:1024x4096"
_LARGE_SRC: Final = "--matmul 3136x1280:1280x16 4096x576:576x32 4096x576:576x128 600x1000:1000x10"
_PLAIN: Final = "--matmul --stag=ab --wtag=ab 16x1024:1024x1024 16x3072:3072x768 32x1024:1024x4096 64x1024:1024x1024"
_PAGES_APART: Final = (
    "--matmul 10x1024:1024x400 16x1024:1024x1024 64x3072:3072x768 256x1024:1024x1024 --wtag=ab 160x1024:1024x1024"
)
_FEW_ROWS: Final = "--matmul --stag=ab --wtag=ab 1x400:400x400 2x1000:1000x500 4x1000:1000x600 4x512:512x512"
_BLOCK_ROWS: Final = "--matmul --stag=ab --wtag=ab 160x1024:1024x1024 256x2048:2048x1024 200x1024:1024x1024"
_SPREAD: Final = "--matmul --stag=ab --wtag=ab 64x1000:1000x1000 80x1280:1280x1500 160x2048:2048x1000 200x900:900x900"
_SOME_ROWS: Final = "--matmul --wtag=any 8x1024:1024x1024 16x2048:2048x1000 16x768:768x3072 --dt=bf16 16x1024:1024x1024"
_DOTS: Final = "--matmul --wtag=ba 12x768:768x768 16x1024:1024x1000 24x768:768x768 --dt=bf16 16x768:768x768"
_LONG_DOTS: Final = "--matmul --wtag=ba 8x3072:3072x768 5x4096:4096x1000 --dt=bf16 8x4096:4096x1000"
_DEEP: Final = "--matmul --stag=ab --wtag=ab 8x3072:3072x128 20x5120:5120x200 9x4096:4096x512 64x3072:3072x768"
_SEQUENCES: Final = "--rnn --alg=VANILLA_LSTM t20mb16sic512 t20mb64sic128"
_ONE_ROW: Final = "--ip --dir=FWD_I mb1ic2048oc4096 mb1ic4096oc2048"
_WINOGRAD: Final = "--conv --alg=auto --dir=FWD_I mb1ic512ih14oc512oh14kh3ph1 mb1ic64ih56oc64oh56kh3ph1"
_WINOGRAD_GROUPS: Final = (
    "--conv --alg=auto --dir=FWD_I g32mb1ic512ih14oc512oh14kh3ph1 g32mb1ic1024ih7oc1024oh7kh3ph1 "
    "g32mb1ic2048ih7oc2048oh7kh3ph1 g21mb1ic1008ih7oc1008oh7kh3ph1"
)
_SHORT_GROUPS: Final = "--conv --alg=auto --dir=FWD_I g32mb1ic512ih7oc512oh7kh3ph1 g32mb1ic512ih9oc512oh9kh3ph1"
_RANKS: Final = "--topk --values=true --k=5 128x1000 --k=2 4096x8 --k=8 4096x64"
_LISTS: Final = "--topk --values=true --k=8 4096x64 1024x128 128x1000"
_LARGEST: Final = "--topk --k=1 --axis=1 --stag=axb 1x21x200x200 1x64x100x100 --stag=abx 128x1000 64x2048"
_HALF_ROWS: Final = "--resampling --tag=abx --alg=linear mb1ic256ih20oh40 mb1ic64ih28oh56 mb1ic64ih19oh38"
_LONG_SUMS: Final = "--reduction --stag=abx --dtag=abx --alg=sum 8x96x97x113:8x96x1x1 12x64x160x160:12x64x1x1"
_SHORT_SUMS: Final = "--reduction --alg=sum,mean 1x2048x49:1x2048x1 1x4096x64:1x4096x1"
_GRADIENTS: Final = (
    "--prelu --dir=BWD_DW --stag=axb 2x256x56x56:1x256x1x1 1x144x56x56:1x144x1x1 --bnorm --dir=BWD_DW --flags=CH "
    "--tag=axb mb2ic256ih56 mb2ic144ih56"
)
_PIECES: Final = "--resampling --tag=axb,aBx16b --alg=nearest mb2ic512ih42oh85iw35ow71 mb8ic64ih52oh104iw57ow115"
_DOUBLED: Final = "--resampling --tag=aBx16b --alg=nearest,linear mb1ic64ih28oh56 mb1ic512ih7oh14 mb1ic64ih80oh160"
_ENLARGED: Final = "--resampling --tag=axb --alg=nearest,linear mb1ic256ih80oh160 mb2ic64ih112oh224"
_FEW_WINDOWS: Final = (
    "--pool --dir=FWD_I mb1ic256ih8oh4kh2sh2 mb1ic256ih7oh4kh3sh2ph1 mb1ic256ih13oh7kh3sh2ph1 mb1ic256ih14oh14kh3ph1"
)
_WHOLE_PLANES: Final = "--pool --dir=FWD_I --tag=abx --alg=avg_np mb1ic2048ih7oh1kh7ph0 mb1ic1280ih4oh1kh4ph0"
_SHORT_WINDOWS: Final = (
    "--pool --alg=max --dir=FWD_I mb1ic128ih56oh28kh2sh2ph0 mb1ic64ih20oh20kh5ph2 mb1ic288ih35oh35kh3ph1 "
    "mb1ic1280ih8oh8kh3ph1"
)

TRIALS: Final[Mapping[str, Trial]] = MappingProxyType(
    {
        "phases.inline_cycles": _trial(_TEAMS, threads=2),
        "phases.latency_cycles": _trial(_SHORT_GROUPS),
        "elementwise.streaming_bytes": _trial(_FUNCTIONS),
        "elementwise.whole_row": _trial(_WEIGHTS_OF_CHANNELS),
        "elementwise.interleaved": _trial(_CHAINS),
        "elementwise.wide_interleaved": _trial(_CHAINS),
        "elementwise.wide_streamed": _trial(_FUNCTIONS),
        "moves.streaming_bytes": _trial(_LARGE_REORDERS),
        "moves.shuffle_streaming_bytes": _trial(_LARGE_SHUFFLES),
        "moves.wide_cost": _trial(_REORDERS),
        "moves.wide_parts_cost": _trial(_PARTS),
        "moves.wide_shuffle_cost": _trial(_SHUFFLES),
        "moves.many_sources_cost": _trial(_SHUFFLES),
        "moves.far_sources_cost": _trial(_LARGE_SHUFFLES),
        "moves.blocked_permute_cost": _trial(_SHUFFLES),
        "moves.convert_ahead_bytes": _trial(_WIDENINGS),
        "moves.page_bytes": _trial(_TRANSPOSES),
        "moves.near_convert_bytes": _trial(_CONVERSIONS),
        "convolution.streaming_bytes": _trial(_WIDE_DST),
        "convolution.plane_copy_cycles": _trial(_PLANES),
        "convolution.panel_share": _trial(_PANELS),
        "convolution.src_ahead_bytes": _trial(_MANY_IMAGES),
        "convolution.held_ahead_bytes": _trial(_SOME_IMAGES),
        "convolution.far_pixels_l2": _trial(_LARGE_PIXELS),
        "convolution.dst_ahead_l2": _trial(_FAR_PIXELS),
        "convolution.rows_ahead_l2": _trial(_FAR_ROWS),
        "convolution.strided_ahead_bytes": _trial(_STRIDES),
        "convolution.held_strided_bytes": _trial(_STRIDES),
        "convolution.windows_ahead_bytes": _trial(_WINDOWS),
        "convolution.dst_runs_bytes": _trial(_SHORT_PIXELS),
        "convolution.streaming_tile_bytes": _trial(_LARGE_TILES),
        "convolution.part_turns": _trial(_LARGE_PARTS),
        "convolution.rows_of_whole": _trial(_GROUPS_OF_16),
        "convolution.narrow_cost": _trial(_HALF_VECTORS),
        "convolution.narrow_groups": _trial(_GROUPS_OF_8),
        "products.panel_share": _trial(_PRODUCTS),
        "products.along_rows_l2": _trial(_LARGE_DST),
        "products.far_dst_l2": _trial(_LARGE_DST),
        "products.dst_ahead_l2": _trial(_LARGE_DST),
        "products.streaming_dst_bytes": _trial(_STREAMED),
        "products.far_src_l2": _trial(_LARGE_SRC),
        "products.block_least_rows": _trial(_PLAIN),
        "products.pack_tiles": _trial(_PLAIN),
        "products.tiles_elements": _trial(_FEW_ROWS),
        "products.few_tiles_elements": _trial(_FEW_ROWS),
        "products.block_rows": _trial(_BLOCK_ROWS),
        "products.plain_depth": _trial(_SPREAD),
        "products.narrow_panel_rows": _trial(_SOME_ROWS),
        "products.dot_row_bytes": _trial(_DOTS),
        "products.dot_near_bytes": _trial(_LONG_DOTS),
        "products.set_lines": _trial(_DEEP),
        "products.block_tiles": _trial(_SPREAD),
        "products.alias_plain_rows": _trial(_PLAIN),
        "products.alias_rows": _trial(_PAGES_APART),
        "products.panel_lines": _trial(_PAGES_APART),
        "products.columns_depth": _trial(_PLAIN),
        "products.memory_stream_bytes": _trial(_ONE_ROW),
        "winograd.memory_overlapped": _trial(_WINOGRAD),
        "winograd.first_tile_waits": _trial(_WINOGRAD),
        "winograd_groups.transform_lanes": _trial(_WINOGRAD_GROUPS),
        "winograd_groups.memory_overlapped": _trial(_WINOGRAD_GROUPS),
        "winograd_groups.far_bytes_per_cycle": _trial(_WINOGRAD_GROUPS),
        "recurrent.starts_last": _trial(_SEQUENCES),
        "topk.narrow_elements": _trial(_RANKS),
        "topk.narrow_largest": _trial(_LARGEST),
        "topk.most_listed_long": _trial(_LISTS),
        "resampling.streaming_share": _trial(_ENLARGED),
        "resampling.pieces_stream": _trial(_PIECES),
        "resampling.channels_cycles": _trial(_DOUBLED),
        "reduction.whole_rows_bytes": _trial(_GRADIENTS),
        "reduction.whole_rows_of_sums_bytes": _trial(_GRADIENTS),
        "reduction.narrow_elements": _trial(_SHORT_SUMS),
        "reduction.row_elements": _trial(_LONG_SUMS),
        "reduction.prefetched_bytes": _trial(_LONG_SUMS),
        "resampling.wide_row": _trial(_HALF_ROWS),
        "pooling.wide_row": _trial(_SHORT_WINDOWS),
        "pooling.narrow_plane": _trial(_WHOLE_PLANES),
        "pooling.strided_results": _trial(_FEW_WINDOWS),
        "pooling.padded_strided_results": _trial(_FEW_WINDOWS),
        "pooling.padded_results": _trial(_FEW_WINDOWS),
        "pooling.rows_ahead_l2": _trial(_FAR_MAXIMA),
    }
)
