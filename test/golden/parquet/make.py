"""Makes the Parquet files of this folder: python3 make.py, with pyarrow.

Ten samples each: one label, two dense features, slots of 10, 4 and 7 keys, in row groups of 4 rows.
The files of good/ hold the same numbers in other encodings and types, those of bad/ one fault each
(bad/huge_page is good/plain with bytes that test/fuzz changed).
The committed ones were written by pyarrow 26.0.1; others read alike, though not to the byte.
"""

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

from clicks import DENSE, SLOT_SIZES, clicks

FOLDER = pathlib.Path(__file__).parent
ROWS = range(10)
F32, F64, I32, I64 = pa.float32(), pa.float64(), pa.int32(), pa.int64()


def columns(**changes):
    content = {
        "label": pa.array([i % 2 for i in ROWS], F32),
        "I1": pa.array([i / 2 for i in ROWS], F32),
        "I2": pa.array([-i for i in ROWS], F32),
        "C1": pa.array([i % 10 for i in ROWS], I64),
        "C2": pa.array([3 * i % 4 for i in ROWS], I64),
        "C3": pa.array([6 - i % 7 for i in ROWS], I64),
    }
    return content | changes


def write(name, content, required=False, **options):
    path = FOLDER / name
    path.parent.mkdir(exist_ok=True)
    table = pa.table(content)
    if required:
        table = table.cast(pa.schema([field.with_nullable(False) for field in table.schema]))
    pq.write_table(table, path, row_group_size=4, store_schema=False, **options)


def good():
    plain = {"use_dictionary": False, "compression": "none"}
    write("good/plain.parquet", columns(), **plain)
    write("good/required.parquet", columns(), required=True, **plain)
    write("good/dictionary_snappy.parquet", columns(), compression="snappy")
    write("good/zstd_v2.parquet", columns(), compression="zstd", data_page_version="2.0")
    write("good/gzip_required.parquet", columns(), required=True, compression="gzip")
    write("good/delta.parquet", columns(), use_dictionary=False, compression="none",
          column_encoding={"label": "BYTE_STREAM_SPLIT", "I1": "BYTE_STREAM_SPLIT", "I2": "PLAIN",
                           "C1": "DELTA_BINARY_PACKED", "C2": "DELTA_BINARY_PACKED",
                           "C3": "DELTA_BINARY_PACKED"})
    types = columns()
    for name, kind in {"label": pa.bool_(), "I1": F64, "I2": I32, "C1": I32, "C2": pa.uint8(),
                       "C3": pa.uint64()}.items():
        types[name] = types[name].cast(kind)
    write("good/types.parquet", types, **plain)


def with_metadata():
    known = columns()
    order = ["C3", "name", "I2", "label", "C1", "I1", "C2"]
    known["name"] = pa.array([f"user {i}" for i in ROWS])
    write("metadata/part_0.parquet", {name: known[name] for name in order}, compression="snappy")
    entries = lambda *names: [{"col_name": name, "index": order.index(name)} for name in names]
    (FOLDER / "metadata" / "_metadata.json").write_text(json.dumps({
        "file_stats": [{"file_name": "part_0.parquet", "num_rows": len(ROWS)}],
        "cats": entries("C1", "C2", "C3"), "conts": entries("I1", "I2"),
        "labels": entries("label")}) + "\n", encoding="utf-8")


def bad():
    plain = {"compression": "none"}
    keys = [3 * i % 4 for i in ROWS]
    write("bad/null.parquet",
          columns(C2=pa.array([None if i == 6 else key for i, key in enumerate(keys)], I64)),
          **plain)
    write("bad/key.parquet",
          columns(C2=pa.array([4 if i == 6 else key for i, key in enumerate(keys)], I64)), **plain)
    write("bad/negative_key.parquet",
          columns(C1=pa.array([-1 if i == 9 else 0 for i in ROWS], I64)), **plain)
    write("bad/nan.parquet",
          columns(I2=pa.array([float("nan") if i == 5 else 1 for i in ROWS], F32)), **plain)
    write("bad/text.parquet", columns(C2=pa.array([str(key) for key in keys])), **plain)
    write("bad/float_key.parquet", columns(C2=pa.array(keys, F32)), **plain)
    write("bad/time.parquet", columns(C2=pa.array(keys, pa.timestamp("us"))), **plain)
    write("bad/list.parquet", columns(C2=pa.array([[key] for key in keys])), **plain)
    fewer = columns()
    del fewer["C3"]
    write("bad/fewer.parquet", fewer, **plain)


def write_clicks():
    """1000 samples to train on and 300 to test with, for the integration tests."""
    for name, first, count in [("train_0", 0, 600), ("train_1", 600, 400), ("test", 1000, 300)]:
        rows = clicks(first, count)
        content = {"label": pa.array([row[0] for row in rows], F32)}
        for i in range(DENSE):
            content[f"I{i + 1}"] = pa.array([row[1][i] for row in rows], F32)
        for i in range(len(SLOT_SIZES)):
            content[f"C{i + 1}"] = pa.array([row[2][i] for row in rows], I64)
        path = FOLDER / "clicks" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(content), path, row_group_size=250, store_schema=False)


if __name__ == "__main__":
    good()
    with_metadata()
    bad()
    write_clicks()
