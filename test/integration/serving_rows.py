"""Reads a file of rows for serving as docs/formats.md describes it, without Cistern's code."""

import struct


def mixed(key):
    """The finalizer of splitmix64."""
    mask = 2**64 - 1
    x = (key + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def half(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def bfloat(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def weights(precision, dim, row):
    if precision == 0:
        return list(struct.unpack_from(f"<{dim}f", row))
    if precision in (1, 2):
        convert = half if precision == 1 else bfloat
        return [convert(bits) for bits in struct.unpack_from(f"<{dim}H", row)]
    scale, offset = struct.unpack_from("<ee", row)
    return [q * scale + offset for q in struct.unpack_from(f"<{dim}B", row, 4)]


def read_rows(path):
    """{key: weights}; checks that every row is where a search for its key looks."""
    data = path.read_bytes()
    magic, form, precision, row_num, group_num, dim, zero, removed = struct.unpack_from(
        "<8sIIQQIIQ", data, len(data) - 64)
    assert (magic, form, zero, removed) == (b"CSTNROWS", 1, 0, 0)
    row_bytes = {0: 8 + 4 * dim, 1: 8 + 2 * dim, 2: 8 + 2 * dim, 3: 12 + dim}[precision]
    row_bytes = (row_bytes + 7) // 8 * 8
    assert len(data) == group_num * 64 + row_num * row_bytes + 64
    rows, order = {}, []
    for group in range(group_num):
        head = struct.unpack_from("<Q", data, group * 64)[0]
        first, count = head & (2**48 - 1), head >> 56
        assert first == len(order) and count <= 56
        for i in range(count):
            at = group_num * 64 + (first + i) * row_bytes
            key = struct.unpack_from("<Q", data, at)[0]
            assert mixed(key) * group_num >> 64 == group
            assert data[group * 64 + 8 + i] == mixed(key) & 255
            order.append(mixed(key))
            rows[key] = weights(precision, dim, data[at + 8:at + row_bytes])
    assert len(rows) == row_num and order == sorted(order)
    return rows
