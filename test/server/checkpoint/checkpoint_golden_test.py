"""Reads the golden row file and manifest from their description alone (docs/formats.md).

The expected contents are repeated here, so that the files, the C++ code and the description agree.
Hashes are checked if the package xxhash is installed.
"""

import json
import os
import struct

try:
    import xxhash
except ImportError:
    xxhash = None

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "golden")


def read(name):
    with open(os.path.join(GOLDEN, name), "rb") as file:
        return file.read()


def check_hash(data, expected):
    if xxhash is not None:
        assert xxhash.xxh3_64_intdigest(data) == expected


def padded(size):
    return (size + 7) // 8 * 8


def header(data):
    magic, major, minor, flags = struct.unpack_from("<8sHHI", data, 0)
    cluster, schema = struct.unpack_from("<QQ", data, 16)
    server, server_num, shard_num, zero = struct.unpack_from("<IIII", data, 32)
    commit, epoch = struct.unpack_from("<QQ", data, 48)
    assert (magic, major, minor, zero) == (b"CISTROWS", 1, 0, 0)
    return flags, cluster, schema, server, server_num, shard_num, commit, epoch


MASK = 2**64 - 1


def mix(key):
    x = (key + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def passes(words, key):
    mixed = mix(key)
    line = (mixed * (len(words) // 8)) >> 64
    bits = mix(mixed)
    return all(words[8 * line + w] >> (bits >> 6 * w & 63) & 1 for w in range(8))


def footer(data, indexed=False):
    """Sections and blocks; of an indexed file also first keys and filters."""
    offset, size, digest, magic = struct.unpack_from("<QQQ8s", data, len(data) - 32)
    assert magic == b"CISTREND" and offset + size + 32 == len(data)
    body = data[offset:offset + size]
    check_hash(body, digest)
    assert body[:64] == data[:64]
    (section_num,) = struct.unpack_from("<Q", body, 64)
    sections = [struct.unpack_from("<IIIIQQQQQQQ", body, 72 + 72 * i) for i in range(section_num)]
    at = 72 + 72 * section_num
    (block_num,) = struct.unpack_from("<Q", body, at)
    numbers = struct.unpack_from("<%dQ" % (2 * block_num), body, at + 8)
    at += 8 + 16 * block_num
    assert len(body) == at + (8 * block_num + 16 * section_num if indexed else 0)
    blocks, begin = [], 64
    for digest, size in zip(numbers[:block_num], numbers[block_num:]):
        blocks.append(data[begin:begin + size])
        check_hash(blocks[-1], digest)
        begin += size
    if not indexed:
        assert begin == offset
        return sections, blocks
    first_keys = struct.unpack_from("<%dQ" % block_num, body, at)
    filters = []
    for i in range(section_num):
        size, digest = struct.unpack_from("<QQ", body, at + 8 * block_num + 16 * i)
        check_hash(data[begin:begin + size], digest)
        filters.append(struct.unpack_from("<%dQ" % (size // 8), data, begin))
        begin += size
    assert begin == offset
    return sections, blocks, first_keys, filters


def sparse_rows(block, floats):
    """floats: cells of a row without embedx, and of one with embedx."""
    rows, zero = struct.unpack_from("<II", block, 0)
    keys = struct.unpack_from("<%dQ" % rows, block, 8)
    flags = block[8 + 8 * rows:8 + 9 * rows]
    at = 8 + 8 * rows + padded(rows)
    assert zero == 0 and not any(block[8 + 9 * rows:at])
    found = []
    for key, flag in zip(keys, flags):
        cells = struct.unpack_from("<%df" % floats[flag], block, at)
        found.append((key, flag, cells))
        at += 4 * floats[flag]
    assert at == len(block)
    return found


def expected_rows(shard, count, ctr, floats):
    rows = []
    for key in range(shard, shard + 4 * count, 4):
        has_embedx = 1 if not ctr or key % 8 == 1 else 0
        rows.append((key, has_embedx, tuple(key + 0.25 * i for i in range(floats[has_embedx]))))
    return rows


def check_row_file():
    data = read("row_file_v1")
    assert header(data) == (0, 0x1122334455667788, 0x99AABBCCDDEEFF00, 1, 2, 4, 7, 3)
    sections, blocks = footer(data)
    # Cells of a row without and with embedx. deep: w[3] and one sum each. ctr under SGD: 10 cells,
    # of which show, click and uid take two each, and 2 of embedx.
    expected = [(0, 1, 5, (6, 6)), (0, 3, 0, (6, 6)), (1, 1, 6, (10, 12)), (1, 3, 6, (10, 12))]
    next_block = 0
    for section, (table, shard, count, floats) in zip(sections, expected):
        block_num = 1 if count else 0
        size = sum(len(block) for block in blocks[next_block:next_block + block_num])
        assert section == (0, table, shard, floats[1], 0, count, 100, 1000 + table * 10 + shard,
                           next_block, block_num, size), section
        if count:
            rows = sparse_rows(blocks[next_block], floats)
            assert rows == expected_rows(shard, count, table == 1, floats), rows
        next_block += block_num
    assert sections[4] == (1, 0, 0, 2, 5, 4, 4, 5, 3, 1, 40), sections[4]
    assert struct.unpack("<II8f", blocks[3]) == (4, 0, 1, 2, 3, 4, 5, 6, 7, -0.5)
    assert len(sections) == 5 and len(blocks) == 4


def check_indexed_row_file():
    data, plain = read("row_file_indexed_v1"), read("row_file_v1")
    assert header(data)[0] == 2 and header(data)[1:] == header(plain)[1:]
    sections, blocks, first_keys, filters = footer(data, indexed=True)
    assert (sections, blocks) == footer(plain)
    assert first_keys == (1, 1, 3, 0), first_keys  # the last block is dense
    assert [len(words) for words in filters] == [8, 0, 8, 8, 0]
    for section, words in zip(sections, filters):
        dense, shard, rows = section[0], section[2], section[5]
        if dense or not rows:
            continue
        assert all(passes(words, shard + 4 * i) for i in range(rows))
        assert sum(passes(words, shard + 4 * i) for i in range(1000, 2000)) < 20


def check_manifest():
    text = read("manifest_v1")
    manifest = json.loads(text)
    hashed = text[:text.rindex(b'"self_xxh3"')]
    assert text[len(hashed):] == b'"self_xxh3": "%s"\n}\n' % manifest["self_xxh3"].encode()
    check_hash(hashed, int(manifest["self_xxh3"], 16))
    assert manifest["format"] == 1 and manifest["commit"] == "7" and manifest["pass"] == "9"
    assert manifest["previous"] == str(0x0123456789ABCDEF)
    assert json.loads(manifest["worker"]) == {"iteration": 12, "file": 'a "b"\\c'}
    assert [file["name"] for file in manifest["files"]] == ["base-3-1-0", "delta-7-3-0",
                                                             "base-7-3-1"]
    assert manifest["files"][2]["root"] == str(0xFEDCBA9876543211)
    assert manifest["tables"][0] == {"name": "deep", "rows": "17", "digest": str(2**64 - 1)}
    assert [table["name"] for table in manifest["schema"]["tables"]] == ["deep", "ctr"]


check_row_file()
check_indexed_row_file()
check_manifest()
print("golden files: as described" + ("" if xxhash else " (hashes not checked: no package xxhash)"))
