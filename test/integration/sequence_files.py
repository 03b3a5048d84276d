"""Reads SequenceFiles of xbox rows from their description alone (docs/formats.md), with Python's
standard library only. Run with files as arguments, it prints a line per row: key, value in hex."""

import struct
import sys
import zlib

WRITABLE = b"org.apache.hadoop.io.BytesWritable"
CODEC = b"org.apache.hadoop.io.compress.DefaultCodec"


class Reader:
    """The bytes of a file with a place in them."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        piece = self.data[self.at:self.at + count]
        assert len(piece) == count, f"the file ends within {count} bytes at {self.at}"
        self.at += count
        return piece

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def vint(self):
        """Hadoop's variable integer, of at least 0."""
        (first,) = struct.unpack("b", self.take(1))
        if first >= -112:
            return first
        assert first >= -120, "a negative length"
        return int.from_bytes(self.take(-112 - first), "big")

    def text(self):
        return self.take(self.vint())

    def writable(self):
        return self.take(self.u32())

    def ended(self):
        return self.at == len(self.data)


def sequence_rows(data):
    """The (form, compression, rows) of a file; rows: (key bytes, value bytes) in order."""
    file = Reader(data)
    assert file.take(4) == b"SEQ\x06"
    assert (file.text(), file.text()) == (WRITABLE, WRITABLE)
    compressed, block = file.take(1)[0], file.take(1)[0]
    if compressed:
        assert file.text() == CODEC
    assert file.u32() == 0, "metadata"
    marker = file.take(16)
    if block:
        return "hadoop", "block", list(block_rows(file, marker))
    records, since, longest = [], 0, 0
    while not file.ended():
        size = file.u32()
        if size == 0xFFFFFFFF:
            assert file.take(16) == marker
            assert not file.ended(), "a marker ends the file"
            since = 0
            size = file.u32()
        key_size = file.u32()
        records.append((file.take(key_size), file.take(size - key_size)))
        longest = max(longest, since)
        since += size
    if not records:
        return None, "record" if compressed else "none", []
    if not compressed and len(records[0][0]) == 8:
        assert longest < 2000, "a marker is missing"
        return "cube", "none", records
    rows = []
    for key, value in records:
        value = Reader(zlib.decompress(value) if compressed else value)
        key = Reader(key)
        rows.append((key.writable(), value.writable()))
        assert key.ended() and value.ended()
    return "hadoop", "record" if compressed else "none", rows


def block_rows(file, marker):
    while not file.ended():
        assert file.u32() == 0xFFFFFFFF and file.take(16) == marker
        count = file.vint()
        key_sizes, keys, value_sizes, values = (Reader(zlib.decompress(file.text()))
                                                for _ in range(4))
        for _ in range(count):
            key, value = Reader(keys.take(key_sizes.vint())), Reader(values.take(value_sizes.vint()))
            yield key.writable(), value.writable()
            assert key.ended() and value.ended()
        assert all(part.ended() for part in (key_sizes, keys, value_sizes, values))


def varint(data, at):
    number, shift = 0, 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def signed(number):
    """The zigzag of protocol buffers' sint."""
    return (number >> 1) ^ -(number & 1)


def result(data):
    """A MioMFResult as {"show": .., "click": .., "weight_lr_person": .., "weight_mf": [..]}, with
    numbers as stored; absent fields are missing."""
    names = {2: "show", 3: "click", 4: "pred", 5: "weight_lr_person", 7: "weight_mf"}
    fields, at, before = {}, 0, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        assert number > before, "fields are out of order"
        before = number
        if number != 7:
            assert wire == 0
            value, at = varint(data, at)
            assert value != 0, "a zero is written"
            fields[names[number]] = signed(value)
            continue
        assert wire == 2, "weight_mf is not packed"
        size, at = varint(data, at)
        end, weights = at + size, []
        while at < end:
            value, at = varint(data, at)
            weights.append(signed(value))
        assert at == end
        fields["weight_mf"] = weights
    return fields


def file_rows(path):
    with open(path, "rb") as file:
        return sequence_rows(file.read())


def rows_of(folder):
    """{key: value bytes} of all files in a folder; asserts that each key is in it once."""
    rows = {}
    for path in sorted(folder.iterdir()):
        for key, value in file_rows(path)[2]:
            (number,) = struct.unpack("<Q", key)
            assert number not in rows, f"key {number} twice"
            rows[number] = value
    return rows


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for row in file_rows(name)[2]:
            print(struct.unpack("<Q", row[0])[0], row[1].hex())
