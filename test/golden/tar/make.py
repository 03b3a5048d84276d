"""Writes the tar shards of this folder with other programs: Python's tarfile, GNU tar and PyPI's webdataset.

    pip install webdataset && python3 make.py
"""

import gzip
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

FOLDER = pathlib.Path(__file__).parent
LONG = "a/rather/long/folder/name/" + "x" * 60 + "/" + "y" * 60  # needs a prefix, pax or a long name

SAMPLES = [
    {"label": 1, "dense": [0.5, -2], "slots": [[7, 8], [], [1]]},
    {"label": [0], "dense": [0, 1e30], "slots": [["a"], 9, None]},
    {"label": "1", "dense": [0.1, "3"], "slots": [[], [], [1, 2, 3]]},
    {"dense": [None, ""], "slots": ["b c", "\N{SNOWMAN}", "last"]},
]


def members(folder):
    for i, sample in enumerate(SAMPLES):
        key = f"{folder}/{i:06d}" if folder else f"{i:06d}"
        if "label" not in sample:
            yield f"{key}.cls", b"0"
        yield f"{key}.json", json.dumps(sample).encode()
        yield f"{key}.txt", b"not read\n"


def with_tarfile(name, form, folder):
    with tarfile.open(FOLDER / name, "w", format=form) as tar:
        for member, content in members(folder):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def with_gnu_tar(name):
    with tempfile.TemporaryDirectory() as scratch:
        names = []
        for member, content in members(LONG):
            path = pathlib.Path(scratch, member)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            names.append(member)
        # The folder is a member too.
        subprocess.run(["tar", "--format=gnu", "--owner=0", "--group=0", "--mtime=@0", "--no-recursion", "-cf",
                        FOLDER / name, "-C", scratch, "a", *names], check=True)


def with_webdataset(name):
    import webdataset
    with webdataset.TarWriter(str(FOLDER / name), mtime=0) as tar:
        for i, sample in enumerate(SAMPLES):
            row = {"__key__": f"{i:06d}", "json": sample, "txt": "not read"}
            if "label" not in sample:
                row["cls"] = 0
            tar.write(row)


def main():
    with_tarfile("ustar.tar", tarfile.USTAR_FORMAT, "a/rather/long/folder/name/" + "x" * 60)
    with_tarfile("pax.tar", tarfile.PAX_FORMAT, LONG + "\N{SNOWMAN}")
    with_tarfile("gnu.tar", tarfile.GNU_FORMAT, LONG)
    with_gnu_tar("gnu_tar.tar")
    with_webdataset("webdataset.tar")
    with open(FOLDER / "webdataset.tar", "rb") as plain, open(FOLDER / "webdataset.tar.gz", "wb") as packed:
        with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as out:
            shutil.copyfileobj(plain, out)


if __name__ == "__main__":
    main()
