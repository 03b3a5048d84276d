#!/usr/bin/env python3
"""Writes an SPDX 2.3 document (JSON): which packages, in which versions, went into a package of Cistern.

    scripts/sbom.py --build BUILD --tree TREE --libraries FILE --name NAME --version VERSION --epoch SECONDS

BUILD      the build folder: the headers that its objects were compiled from tell which packages are compiled in
TREE       the folder that is packed: each file is listed, with its hashes
FILE       the paths of the libraries that were copied to TREE/lib, one a line
SECONDS    when the document was made, since 1970; the same inputs give the same bytes

scripts/package.sh calls it, and writes dist/NAME-VERSION-linux-ARCH.spdx.json. A header or library that belongs to no
package of this machine (dpkg or pip) is an error: the list would have a hole.
"""

import argparse
import datetime
import email.parser
import hashlib
import json
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NONE = "NOASSERTION"
# Objects of these folders, and headers compiled for them, are in no package.
NOT_PACKED = re.compile(r"^(test|examples|python)/|cistern_headers_test")


class Failure(Exception):
    pass


def output_of(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options).stdout


class Owners:
    """Finds the package that a file belongs to: ("deb", "pypi" or "generic", name, version, supplier)."""

    def __init__(self):
        self._debian = {}
        listed = output_of("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Maintainer}\n")
        for line in listed.splitlines():
            name, version, maintainer = line.split("\t")
            self._debian[name] = ("deb", name, version, maintainer)
        self._wheels = {}

    def of(self, paths):
        """The owners of files, as a set. Failure names the first file without one."""
        paths = sorted({pathlib.Path(path).resolve() for path in paths})
        # The same file is registered with or without /usr.
        spellings = {path: [str(path), str(path).removeprefix("/usr")] for path in paths}
        found = {}
        asked = [text for texts in spellings.values() for text in texts]
        for begin in range(0, len(asked), 500):
            for line in output_of("dpkg", "-S", *asked[begin:begin + 500]).splitlines():
                packages, _, path = line.partition(": ")
                found[path] = packages.split(",")[0].split(":")[0]
        owners = set()
        for path in paths:
            names = [found[text] for text in spellings[path] if text in found]
            owner = self._debian.get(names[0]) if names else self._wheel_of(path) or cuda_of(path)
            if owner is None:
                raise Failure(f"{path} belongs to no package of dpkg or pip, so its version is unknown")
            owners.add(owner)
        return owners

    def _wheel_of(self, path):
        for folder in path.parents:
            if folder not in self._wheels:
                self._wheels[folder] = [(info, self._record(info)) for info in folder.glob("*.dist-info")]
            for info, record in self._wheels[folder]:
                if str(path.relative_to(folder)) in record:
                    fields = email.parser.Parser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
                    return ("pypi", fields["Name"].lower(), fields["Version"], fields.get("Author", NONE))
        return None

    @staticmethod
    def _record(info):
        record = info / "RECORD"
        return {line.split(",")[0] for line in record.read_text(encoding="utf-8").splitlines()} if record.exists() else set()


def cuda_of(path):
    """The CUDA toolkit, which NVIDIA's installer puts into a folder that no package knows."""
    for folder in path.parents:
        header = folder / "cuda_runtime_api.h"
        if header.exists():
            number = int(re.search(r"define\s+CUDART_VERSION\s+(\d+)", header.read_text(encoding="utf-8")).group(1))
            return ("generic", "cuda-toolkit", f"{number // 1000}.{number % 1000 // 10}", "NVIDIA")
    return None


def compiled_headers(build):
    """The files that the objects of programs and libraries were compiled from, outside the source and the build folder."""
    headers, wanted = set(), False
    build = pathlib.Path(build).resolve()
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            wanted = not NOT_PACKED.search(line)
        elif line and wanted:
            headers.add((build / line.strip()).resolve())
    if not headers:
        raise Failure(f"{build} knows no headers: build it with ninja first")
    wheels = (ROOT / "build").resolve()
    ours = [pathlib.Path(ROOT).resolve(), build]
    return {header for header in headers
            if "pyarrow" in header.parts or wheels in header.parents and build not in header.parents
            or not any(folder in header.parents for folder in ours)}


def file_entry(tree, path, number):
    content = path.read_bytes()
    return {
        "SPDXID": f"SPDXRef-File-{number}",
        "fileName": f"./{path.relative_to(tree)}",
        "checksums": [{"algorithm": name, "checksumValue": hashlib.new(name.lower(), content).hexdigest()}
                      for name in ("SHA1", "SHA256")],
        "licenseConcluded": NONE,
        "licenseInfoInFiles": [NONE],
        "copyrightText": NONE,
    }


def distribution():
    """The name of this system in a package URL: debian, ubuntu ..."""
    return platform.freedesktop_os_release()["ID"]


def package_entry(owner):
    kind, name, version, supplier = owner
    where = f"pkg:deb/{distribution()}/{name}@{version}" if kind == "deb" else f"pkg:{kind}/{name}@{version}"
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}"),
        "name": name,
        "versionInfo": version,
        "supplier": f"Organization: {supplier}" if supplier != NONE else NONE,
        "downloadLocation": NONE,
        "filesAnalyzed": False,
        "licenseConcluded": NONE,
        "licenseDeclared": NONE,
        "copyrightText": NONE,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": where.replace("+", "%2B").replace("~", "%7E")}],
    }


def verification_code(files):
    """SPDX 2.3, section 7.9: the hash of all files' hashes."""
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    return hashlib.sha1("".join(sums).encode()).hexdigest()


def document(build, tree, libraries, name, version, epoch):
    """The SPDX document, as a dict."""
    owners = Owners()
    linked = owners.of(libraries)
    compiled = owners.of(compiled_headers(build)) - linked
    tree = pathlib.Path(tree)
    paths = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    files = [file_entry(tree, path, number) for number, path in enumerate(paths)]
    code = verification_code(files)
    product = {
        "SPDXID": "SPDXRef-cistern",
        "name": name,
        "versionInfo": version,
        "downloadLocation": NONE,
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": code},
        "licenseConcluded": NONE,
        "licenseDeclared": "Apache-2.0",
        "licenseInfoFromFiles": [NONE],
        "copyrightText": NONE,
    }
    entries = {owner: package_entry(owner) for owner in linked | compiled}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-cistern")]
    relations += [("SPDXRef-cistern", "CONTAINS", file["SPDXID"]) for file in files]
    relations += [("SPDXRef-cistern", "DYNAMIC_LINK", entries[owner]["SPDXID"]) for owner in sorted(linked)]
    # Headers, and libraries without a shared form.
    relations += [("SPDXRef-cistern", "STATIC_LINK", entries[owner]["SPDXID"]) for owner in sorted(compiled)]
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{code}",
        "creationInfo": {"created": created, "creators": ["Tool: cistern-sbom"]},
        "packages": [product] + [entries[owner] for owner in sorted(entries)],
        "files": files,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--build", "--tree", "--libraries", "--name", "--version"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--epoch", type=int, required=True)
    words = parser.parse_args()
    libraries = pathlib.Path(words.libraries).read_text(encoding="utf-8").split()
    try:
        made = document(words.build, words.tree, libraries, words.name, words.version, words.epoch)
    except Failure as failure:
        print(f"sbom: {failure}", file=sys.stderr)
        return 1
    json.dump(made, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
