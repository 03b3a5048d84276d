"""The keyset of a folder of Parquet files, with the arguments of HugeCTR's generate_keyset.py.

    python -m cistern_ps.hugectr.generate_keyset --src_dir_path DIR --keyset_path FILE --slot_size_array 100 20 300

Training needs no keysets; they name passes, as in HugeCTR, and are checked. `cistern data keyset` writes them for a model
of any format.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Optional, Sequence

from .. import data
from ..errors import Error, UsageError


def generate_keyset(src_dir_path: str, keyset_path: str, cat_features_pos: Optional[Sequence[int]] = None,
                    slot_size_array: Optional[Sequence[int]] = None, int32_keyset: bool = False) -> int:
    """Writes the distinct keys of src_dir_path/*.parquet to keyset_path, ascending, and returns their number.

    cat_features_pos: the columns of keys; those of _metadata.json, by default all. slot_size_array: the keys of a slot
    begin at the sum of the sizes before it; by default all begin at 0. int32_keyset: 4 bytes a key instead of 8.
    """
    import numpy as np

    folder = pathlib.Path(src_dir_path)
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise UsageError(f"generate_keyset: {folder} has no *.parquet", "name the folder of the data, such as file0/train")
    metadata_path = folder / "_metadata.json"
    if not metadata_path.exists():
        raise UsageError(f"generate_keyset: {folder} has no _metadata.json, which says which columns are keys",
                         "write one (docs/formats.md), or use `cistern data keyset`")
    metadata = json.loads(metadata_path.read_text(encoding="utf-8"))
    positions = [column["index"] for column in metadata["cats"]]
    if cat_features_pos is not None and list(cat_features_pos) != positions:
        raise UsageError(f"generate_keyset: cat_features_pos is {list(cat_features_pos)}, but {metadata_path} has {positions}",
                         "leave cat_features_pos out, or correct the file")
    if slot_size_array and len(slot_size_array) != len(positions):
        raise UsageError(f"generate_keyset: {len(slot_size_array)} sizes in slot_size_array for {len(positions)} columns",
                         "give one for each")
    keys = np.empty(0, np.int64)
    for batch in data.parquet(files, slots=len(positions), dense=len(metadata["conts"]), label=len(metadata["labels"]),
                              slot_sizes=list(slot_size_array or ()), batch=1 << 16):
        keys = np.union1d(keys, batch.keys.astype(np.int64))
    if int32_keyset and len(keys) and (keys[0] < 0 or keys[-1] >= 1 << 32):
        raise UsageError(f"generate_keyset: key {keys[-1]} does not fit 4 bytes", "leave int32_keyset out")
    keys.astype("<u4" if int32_keyset else "<i8").tofile(keyset_path)
    return len(keys)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="generate_keyset", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--src_dir_path", required=True)
    parser.add_argument("--keyset_path", required=True)
    parser.add_argument("--cat_features_pos", nargs="*", type=int)
    parser.add_argument("--slot_size_array", nargs="*", type=int)
    parser.add_argument("--int32_keyset", type=bool, default=False)
    arguments = parser.parse_args()
    try:
        count = generate_keyset(**vars(arguments))
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    print(f"{count} keys in {arguments.keyset_path}")


if __name__ == "__main__":
    main()
