"""Writes the initial files of corpus/, one of each kind that the readers support. Standard library only.

Shape: one label, two dense features, inputs with 2 slots and 1 slot, sizes 10, 4 and 7 (reader_targets.cc).
Files that a fuzzer finds are added to the same folders and kept.
"""

import io
import json
import pathlib
import struct
import tarfile

FOLDER = pathlib.Path(__file__).parent
CORPUS, GOLDEN = FOLDER / "corpus", FOLDER.parent / "golden/parquet"
ARROW = FOLDER.parent / "golden/arrow"


def put(name, content):
    path = CORPUS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def norm(is_sum, wide, weighted=False):
    """weighted: the keys of the first input have weights."""
    def wrapped(payload):
        if not is_sum:
            return payload
        return struct.pack("<i", len(payload)) + payload + bytes([sum(payload) % 256])

    key = "q" if wide else "I"
    content = wrapped(struct.pack("<8q", int(is_sum), 3, 1, 2, 5 if weighted else 3, 0, 0, 0))
    for label, slots in [(1, [[7, 8], [], [9]]), (0, [[], [], []]), (1, [[1], [2, 3], [4, 5]])]:
        record = struct.pack("<3f", label, 0.5, -2)
        for keys in slots:
            record += struct.pack(f"<i{len(keys)}{key}", len(keys), *keys)
        for keys in slots[:2] if weighted else []:
            bits = [] if keys == [1] else [0x3F000000 + key for key in keys]  # none: all are 1
            record += struct.pack(f"<i{len(bits)}{key}", len(bits), *bits)
        content += wrapped(record)
    return bytes([is_sum + 2 * wide + 4 * weighted]) + content


def columns_tar():
    row = {"label": "1", "I1": 2, "I2": "0.5", "C1": ["a", 7], "C2": "", "C3": "c"}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(2):
            content = json.dumps(row).encode()
            info = tarfile.TarInfo(f"{i}.json")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def main():
    for is_sum in (0, 1):
        for wide in (0, 1):
            put(f"norm/sum{is_sum}_wide{wide}", norm(is_sum, wide))
            put(f"norm/weights_sum{is_sum}_wide{wide}", norm(is_sum, wide, weighted=True))
    put("raw/whole", b"\0" + struct.pack("<6i", 1, 0, 5, 9, 3, 6) * 3)
    put("raw/floats", b"\1" + struct.pack("<3f3I", 1, 0.25, -5, 0, 1, 2) * 3)
    put("file_list/one", b"1\n/proc/self/exe\n")
    put("file_list/none", b"0\n")
    put("file_list/absent", b"2\nno/such/file\nnor_this\n")
    put("keyset/narrow", b"\0" + struct.pack("<4I", 14, 0, 10, 77))
    put("keyset/wide", b"\1" + struct.pack("<4q", 14, 0, 10, 77))
    for path in sorted((GOLDEN / "good").glob("*.parquet")):
        put(f"parquet/{path.stem}", path.read_bytes())
    for path in sorted((ARROW / "good").iterdir()):
        put(f"message/{path.name}", path.read_bytes())
    put("message/csv", (ARROW / "rows.csv").read_bytes().split(b"\n", 1)[1])
    put("message/json", (ARROW / "rows.jsonl").read_bytes())
    for path in sorted((FOLDER.parent / "golden/tar").glob("*.tar*")):
        put(f"tar/{path.name}", b"\1" + path.read_bytes())
    put("tar/columns", b"\2" + columns_tar())
    put("metadata/nvtabular", (GOLDEN / "metadata/_metadata.json").read_bytes())


if __name__ == "__main__":
    main()
