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


def key_of(mixed_key):
    """The inverse of mixed."""
    mask = 2**64 - 1
    x = mixed_key
    x = x ^ (x >> 31) ^ (x >> 62)
    x = x * pow(0x94D049BB133111EB, -1, 2**64) & mask
    x = x ^ (x >> 27) ^ (x >> 54)
    x = x * pow(0xBF58476D1CE4E5B9, -1, 2**64) & mask
    x = x ^ (x >> 30) ^ (x >> 60)
    return (x - 0x9E3779B97F4A7C15) & mask


def unpacked(field, bits, group, group_num, tag):
    """The mixed key of a row of format 2: the only one of its group with these low bits."""
    least = -(-(group << 64) // group_num)
    low = field << 8 | tag
    at = least - least % (1 << bits) + low
    return at if at >= least else at + (1 << bits)


def read_rows(path):
    """{key: weights}; checks that every row is where a search for its key looks."""
    data = path.read_bytes()
    magic, form, precision, row_num, group_num, dim, zero, removed = struct.unpack_from(
        "<8sIIQQIIQ", data, len(data) - 64)
    assert (magic, zero, removed) == (b"CSTNROWS", 0, 0)
    assert form == (2 if precision == 3 else 1)
    key_bytes = 8 if form == 1 else max(1, -(-(56 - (group_num.bit_length() - 1)) // 8))
    row_bytes = key_bytes + {0: 4 * dim, 1: 2 * dim, 2: 2 * dim, 3: 4 + dim}[precision]
    if form == 1:
        row_bytes = (row_bytes + 7) // 8 * 8
    assert len(data) == group_num * 64 + (row_num * row_bytes + 7) // 8 * 8 + 64
    rows, order = {}, []
    for group in range(group_num):
        head = struct.unpack_from("<Q", data, group * 64)[0]
        first, count = head & (2**48 - 1), head >> 56
        assert first == len(order) and count <= 56
        for i in range(count):
            at = group_num * 64 + (first + i) * row_bytes
            field = int.from_bytes(data[at:at + key_bytes], "little")
            tag = data[group * 64 + 8 + i]
            key = field
            if form == 2:
                key = key_of(unpacked(field, 8 + 8 * key_bytes, group, group_num, tag))
            assert mixed(key) * group_num >> 64 == group
            assert tag == mixed(key) & 255
            order.append(mixed(key))
            rows[key] = weights(precision, dim, data[at + key_bytes:at + row_bytes])
    assert len(rows) == row_num and order == sorted(order)
    return rows
