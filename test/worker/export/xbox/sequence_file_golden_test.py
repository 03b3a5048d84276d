"""The golden SequenceFiles, written and read from their description (docs/formats.md).

    python3 test/worker/export/xbox/sequence_file_golden_test.py --write     made them
"""

import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
GOLDEN = ROOT / "test" / "golden" / "sequence_file"
sys.path.insert(0, str(ROOT / "test" / "integration"))

from sequence_files import WRITABLE, file_rows  # noqa: E402

MARKER = b"0123456789abcdef"
ROWS = [(struct.pack("<Q", i * i), bytes([i]) * (3 * (i % 20))) for i in range(150)]


def sized(data):
    return struct.pack(">I", len(data)) + data


def golden(form):
    data = b"SEQ\x06" + 2 * (bytes([len(WRITABLE)]) + WRITABLE) + bytes(6) + MARKER
    since = 0
    for key, value in ROWS:
        if form == "cube" and since >= 2000:
            data, since = data + b"\xff" * 4 + MARKER, 0
        if form == "hadoop":
            key, value = sized(key), sized(value)
        since += len(key) + len(value)
        data += struct.pack(">II", len(key) + len(value), len(key)) + key + value
    return data


for name in ("cube", "hadoop"):
    if "--write" in sys.argv[1:]:
        (GOLDEN / name).write_bytes(golden(name))
    assert (GOLDEN / name).read_bytes() == golden(name), name
    assert file_rows(GOLDEN / name) == (name, "none", ROWS), name
print("golden SequenceFiles: as described")
