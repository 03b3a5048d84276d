"""Makes the Arrow streams of this folder: python3 make.py, with pyarrow.

The files of good/ hold the rows of rows.csv, rows.jsonl and rows.parquet in other types and encodings, those of bad/
one fault each. The committed ones were written by pyarrow 26.0.1.
"""

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent
ROWS = range(11)
CLICKS = [i % 3 == 0 for i in ROWS]
PRICES = [None if i == 4 else i / 8 - 0.3 for i in ROWS]
USERS = [None if i == 6 else f"u{i % 4}" for i in ROWS]
TAGS = [[f"t{k}" for k in range(i % 4)] for i in ROWS]
ITEMS = [7 - 10**12 * (i % 5) for i in ROWS]
DAYS = [18000 + i % 3 for i in ROWS]


def columns(**changes):
    """As text and numbers of plain types, with columns that no recipe reads."""
    content = {
        "id": pa.array(ROWS, pa.int64()),
        "click": pa.array(CLICKS, pa.bool_()),
        "price": pa.array(PRICES, pa.float64()),
        "user": pa.array(USERS, pa.string()),
        "tags": pa.array(TAGS, pa.list_(pa.string())),
        "item": pa.array(ITEMS, pa.int64()),
        "day": pa.array(DAYS, pa.date32()),
        "device": pa.array([{"os": i} for i in ROWS], pa.struct([("os", pa.int8())])),
    }
    return {name: column for name, column in (content | changes).items() if column is not None}


def stream(content, batch=None, **options):
    table = pa.table(content)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch)
    return sink.getvalue().to_pybytes()


def put(name, content):
    path = FOLDER / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def text():
    lines, objects = ["id,click,price,user,tags,item,day"], []
    days = pa.array(DAYS, pa.date32()).cast(pa.string()).to_pylist()
    for i in ROWS:
        price = "" if PRICES[i] is None else repr(PRICES[i])
        lines.append(f"{i},{int(CLICKS[i])},{price},{USERS[i] or ''},{';'.join(TAGS[i])},{ITEMS[i]},{days[i]}")
        objects.append(json.dumps({"click": CLICKS[i], "price": PRICES[i], "user": USERS[i], "tags": TAGS[i],
                                   "item": ITEMS[i], "day": days[i]}))
    put("rows.csv", ("\n".join(lines) + "\n").encode())
    put("rows.jsonl", ("\n".join(objects) + "\n").encode())
    pq.write_table(pa.table(columns()), FOLDER / "rows.parquet")


def good():
    put("good/plain", stream(columns()))
    put("good/batches", stream(columns(), batch=4))
    reverse = dict(reversed(columns().items()))
    put("good/order", stream(reverse))
    put("good/dictionaries", stream(columns(
        user=pa.array(USERS).dictionary_encode(),
        tags=pa.array(TAGS, pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        day=pa.array(DAYS, pa.date32()).dictionary_encode()), batch=5))
    deltas = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), words) for index, words in (
        ([0, 1, 2, 3], ["u0", "u1", "u2", "u3"]),
        ([0, 1, None, 3, 0, 1, 2], ["u0", "u1", "u2", "u3", "never"]))])
    put("good/deltas", stream(columns(user=deltas), emit_dictionary_deltas=True))
    put("good/replaced", stream(columns(user=pa.chunked_array([
        pa.array(USERS[:3]).dictionary_encode(), pa.array(USERS[3:]).dictionary_encode()]))))
    for codec in ("zstd", "lz4"):
        put(f"good/{codec}", stream(columns(user=pa.array(USERS).dictionary_encode()), compression=codec))
    put("good/types", stream(columns(
        click=pa.array(CLICKS).cast(pa.uint8()), price=pa.array(PRICES, pa.float64()),
        user=pa.array(USERS, pa.large_string()), tags=pa.array(TAGS, pa.large_list(pa.string_view())),
        item=pa.array([str(item) for item in ITEMS], pa.string_view()),
        day=pa.array(DAYS, pa.date32()).cast(pa.timestamp("s")).cast(pa.date64()))))
    put("good/values", stream(columns(
        click=pa.array([int(click) for click in CLICKS], pa.decimal128(5, 2)),
        user=pa.array([None if user is None else user.encode() for user in USERS], pa.binary(2)),
        tags=pa.array([[f"t{k}" if k < i % 4 else None for k in range(4)] for i in ROWS], pa.list_(pa.binary(), 4)))))
    put("good/no_rows", stream({name: column[:0] for name, column in columns().items()}))


def clocks():
    """Times of day and durations, and the same as text, by hand."""
    put("clocks", stream({
        "click": pa.array([1, 0, 1]),
        "s": pa.array([0, 59225, 86399], pa.time32("s")),
        "ms": pa.array([0, 59225500, None], pa.time32("ms")),
        "us": pa.array([0, 59225000001, 86399999999], pa.time64("us")),
        "ns": pa.array([1, 59225050000000, 0], pa.time64("ns")),
        "took": pa.array([1500, -250, 60000], pa.duration("ms")),
        "days": pa.array([0, 86400, None], pa.duration("s"))}))
    put("clocks.csv", b"""click,s,ms,us,ns,took,days
1,00:00:00,00:00:00,00:00:00,00:00:00.000000001,1.5,0.0
0,16:27:05,16:27:05.5,16:27:05.000001,16:27:05.05,-0.25,86400.0
1,23:59:59,,23:59:59.999999,00:00:00,60.0,
""")


def structs():
    """Structs, lists of structs and structs in them, and the same as text, by hand."""
    screens = pa.StructArray.from_arrays([pa.array([9, 8, 8, None], pa.int16())], ["wide"],
                                         mask=pa.array([False, True, False, True]))
    users = pa.StructArray.from_arrays([pa.array(["a", None, "c", "b"]), screens], ["os", "screen"],
                                       mask=pa.array([False, False, True, False]))  # with values below the null
    seen = pa.list_(pa.struct([("id", pa.int64()), ("by", pa.struct([("name", pa.string())])), ("at", pa.list_(pa.int8()))]))
    content = {
        "click": pa.array([1, 0, 1, 0]),
        "user": users,
        "seen": pa.array([[{"id": 7, "by": {"name": "x"}, "at": [1]}, None, {"id": 8, "by": None}], [], None,
                          [{"id": None, "by": {"name": "y"}}, {"id": 6, "by": {"name": "z"}}]], seen)}
    content["map"] = pa.array([[("k", 0.5), ("l", None)], [], None, [("l", 2), ("k", 3)]], pa.map_(pa.string(), pa.float32()))
    content["vec"] = pa.array([[0.5, -2], [None, 3], None, [4, 0.25]], pa.list_(pa.float32(), 2))
    table = pa.table(content)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    put("structs", sink.getvalue().to_pybytes())
    pq.write_table(table, FOLDER / "structs.parquet")
    put("structs.csv", b"""click,user.os,user.screen.wide,seen.id,seen.by.name,map,vec.0,vec.1
1,a,9,7|8,x,k:0.5,0.5,-2
0,,,,,,,3
1,,,,,,,
0,b,,6,y|z,l:2|k:3,4,0.25
""")


def bad():
    put("bad/no_click", stream(columns(click=None)))
    put("bad/nothing", stream({"other": pa.array([1, 2])}))
    put("bad/null_click", stream(columns(click=pa.array(CLICKS[:9] + [None, True])), batch=4))
    put("bad/text_click", stream(columns(click=pa.array(["1"] * 6 + ["maybe"] + ["1"] * 4)), batch=4))
    put("bad/struct", stream(columns(user=columns()["device"])))
    put("bad/lists_of_lists", stream(columns(tags=pa.array([[tags] for tags in TAGS]))))
    put("bad/separator", stream(columns(tags=pa.array([["a"]] * 5 + [["b;c"]] * 6))))
    twice = pa.Table.from_arrays([*columns().values(), columns()["user"]], names=[*columns(), "user"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, twice.schema) as writer:
        writer.write_table(twice)
    put("bad/twice", sink.getvalue().to_pybytes())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.table(columns()).schema) as writer:
        writer.write_table(pa.table(columns()))
    put("bad/file", sink.getvalue().to_pybytes())
    put("bad/two_streams", stream(columns()) * 2)
    put("bad/no_end", stream(columns())[:-8])
    wild = pa.DictionaryArray.from_arrays(pa.array([0] * 8 + [9] * 3, pa.int32()), ["u0", "u1"], safe=False)
    put("bad/index", stream(columns(user=wild)))
    offsets = pa.py_buffer(b"".join(k.to_bytes(4, "little") for k in [0, 2, 4, 6, 2**30, 10, 12, 14, 16, 18, 20, 22]))
    words = pa.StringArray.from_buffers(len(ROWS), offsets, pa.py_buffer(b"u0" * 11))
    put("bad/offsets", stream(columns(user=words)))
    latin = pa.StringArray.from_buffers(len(ROWS), pa.py_buffer(b"".join(k.to_bytes(4, "little") for k in range(12))),
                                        pa.py_buffer(b"\xe9" * 11))
    put("bad/not_utf8", stream(columns(user=latin)))
    zeros = pa.array(["0" * (200 << 20)] + [""] * 10)
    put("bad/huge", stream(columns(user=zeros), compression="zstd"))


if __name__ == "__main__":
    text()
    good()
    clocks()
    structs()
    bad()
