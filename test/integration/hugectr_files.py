"""Reads and writes HugeCTR's model files without Cistern, as "another program" in the tests.

The order of weights is HugeCTR's: InnerProduct W (row-major, in x out) then b; BatchNorm gamma, beta;
Multiply W; MultiCross w and b of each cross. Uses Python's standard library only.
"""

import array
import json
import pathlib
import struct


def floats(path):
    cells = array.array("f")
    cells.frombytes(pathlib.Path(path).read_bytes())
    return list(cells)


def write_floats(path, cells):
    pathlib.Path(path).write_bytes(array.array("f", cells).tobytes())


def whole_numbers(path):
    content = pathlib.Path(path).read_bytes()
    return list(struct.unpack(f"<{len(content) // 8}Q", content))


def rows_of_file(path, dim, key="I", slots=False):
    """{key: (slot or None, [weights])} of a file of HugeCTR 2.3."""
    record = struct.Struct(f"<{key}{'Q' if slots else ''}{dim}f")
    rows = {}
    for fields in record.iter_unpack(pathlib.Path(path).read_bytes()):
        slot = fields[1] if slots else None
        assert fields[0] not in rows, f"key {fields[0]} occurs twice"
        rows[fields[0]] = (slot, list(fields[2 if slots else 1:]))
    return rows


def write_rows_to_file(path, rows, dim, key="I", slots=False):
    record = struct.Struct(f"<{key}{'Q' if slots else ''}{dim}f")
    with open(path, "wb") as file:
        for one, (slot, weights) in rows.items():
            file.write(record.pack(one, *([slot] if slots else []), *weights))


def rows_of_folder(path, dim, slots=False, states=()):
    """{key: (slot or None, [weights], {state: [numbers]})} of a folder of HugeCTR 3.x."""
    path = pathlib.Path(path)
    keys = whole_numbers(path / "key")
    slot = whole_numbers(path / "slot_id") if slots else [None] * len(keys)
    columns = {name: floats(path / name) for name in ("emb_vector", *states)}
    for cells in columns.values():
        assert len(cells) == len(keys) * dim
    return {one: (slot[i], columns["emb_vector"][i * dim:(i + 1) * dim],
                  {name: columns[name][i * dim:(i + 1) * dim] for name in states})
            for i, one in enumerate(keys)}


def write_rows_to_folder(path, rows, dim, slots=False):
    path = pathlib.Path(path)
    path.mkdir(parents=True)
    (path / "key").write_bytes(struct.pack(f"<{len(rows)}Q", *rows))
    write_floats(path / "emb_vector", [w for row in rows.values() for w in row[1]])
    if slots:
        (path / "slot_id").write_bytes(
            struct.pack(f"<{len(rows)}Q", *(row[0] for row in rows.values())))


def statistics(dense_path):
    """[(mean, variance)] of each BatchNorm layer."""
    text = pathlib.Path(f"{dense_path}.ntp.json").read_text(encoding="utf-8")
    return [(one["mean"], one["var"]) for one in json.loads(text)["layers"]
            if one["type"] == "BatchNorm"]
