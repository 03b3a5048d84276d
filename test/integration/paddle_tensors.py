"""Reads Paddle's tensor files from their description alone (docs/formats.md), with Python's standard
library only."""

import array
import math
import struct

from sequence_files import varint


def tensor(data):
    """The (dims, numbers) of a file."""
    version, levels, tensor_version, size = struct.unpack_from("<IQIi", data)
    assert (version, levels, tensor_version) == (0, 0, 0)
    at = struct.calcsize("<IQIi")
    end, dims, kind = at + size, [], None
    while at < end:
        tag, at = varint(data, at)
        number, at = varint(data, at)
        if tag == 1 << 3:
            kind = number
        else:
            assert tag == 2 << 3, tag
            dims.append(number)
    assert at == end and kind == 5, "not float32"
    numbers = array.array("f", data[end:])
    assert len(numbers) == math.prod(dims)
    return dims, list(numbers)


def file_tensor(path):
    with open(path, "rb") as file:
        return tensor(file.read())
