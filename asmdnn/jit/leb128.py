"""Numbers of as many bytes as they need: LEB128 of DWARF, which the wire format of protobuf calls varint."""


def uleb(value: int) -> bytes:
    """Unsigned LEB128: 7 bits a byte, the lowest first, the top bit set on all but the last."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*data, value))
