"""Other libraries that `asmdnn bench` measures against."""


def cap_isa(peer: str, isa: str) -> None:
    """Hold a peer to an ISA level, where it takes that once for the process.  Raises AsmdnnError if it is missing."""
    if peer == "onednn":
        from asmdnn.bench.peers.onednn_library import load

        load().cap_isa(isa)
    elif peer == "mkl":
        from asmdnn.bench.peers.mkl_library import load_mkl

        load_mkl().cap_isa(isa)
    elif peer == "torch":
        from asmdnn.bench.peers.torch_rnn import cap_torch

        cap_torch(isa)
