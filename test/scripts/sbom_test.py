#!/usr/bin/env python3
"""Tests the list of packages that went into a package (scripts/sbom.py), on the programs of this build.

The SPDX project's own reader checks the document, if spdx-tools is installed or scripts/test.sh could install it.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "build/spdx_tools"))

import sbom  # noqa: E402

PROGRAMS = pathlib.Path(os.environ["CISTERN_BIN"])
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so")


def libraries_of(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE)
    return [path for name, path in found if not SYSTEM.match(name)]


@unittest.skipUnless(shutil.which("dpkg-query") and shutil.which("ninja"), "needs dpkg and ninja")
class Sbom(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.tree = pathlib.Path(cls.folder.name)
        (cls.tree / "bin").mkdir()
        shutil.copy(PROGRAMS / "cistern-server", cls.tree / "bin")
        (cls.tree / "README").write_text("read me")
        cls.libraries = libraries_of(PROGRAMS / "cistern-server")
        try:
            cls.document = cls.make()
        except sbom.Failure as failure:
            if str(ROOT) in str(failure):
                raise
            raise unittest.SkipTest(f"this machine has libraries of its own: {failure}")

    @classmethod
    def make(cls):
        return sbom.document(PROGRAMS.parent, cls.tree, cls.libraries, "cistern", "0.1.0", 1700000000)

    def versions(self, kind):
        by_id = {package["SPDXID"]: package for package in self.document["packages"]}
        return {by_id[relation["relatedSpdxElement"]]["name"]: by_id[relation["relatedSpdxElement"]]["versionInfo"]
                for relation in self.document["relationships"] if relation["relationshipType"] == kind}

    def test_libraries_with_the_versions_of_dpkg(self):
        linked = self.versions("DYNAMIC_LINK")
        for package in ("libgrpc++1.51", "libprotobuf32", "libspdlog1.10", "zlib1g"):
            found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True,
                                   check=False)
            if found.returncode == 0 and package in linked:
                self.assertEqual(linked[package], found.stdout)
        self.assertIn("zlib1g", linked)
        self.assertFalse([name for name in linked if name.startswith("libc6")])

    def test_headers_that_are_compiled_in(self):
        compiled = self.versions("STATIC_LINK")
        for package in ("libeigen3-dev", "nlohmann-json3-dev", "libcli11-dev"):
            self.assertIn(package, compiled)
        for package in ("libgtest-dev", "libgmock-dev", "libbenchmark-dev"):
            self.assertNotIn(package, compiled)  # of tests only

    def test_packages_are_named_by_the_system_that_they_are_from(self):
        with open("/etc/os-release", encoding="utf-8") as file:
            system = re.search(r'^ID="?([a-z]+)', file.read(), re.MULTILINE).group(1)
        places = {package["name"]: package["externalRefs"][0]["referenceLocator"]
                  for package in self.document["packages"] if "externalRefs" in package}
        self.assertTrue(places["zlib1g"].startswith(f"pkg:deb/{system}/zlib1g@"), places["zlib1g"])
        with unittest.mock.patch.object(sbom, "distribution", lambda: "ubuntu"):
            entry = sbom.package_entry(("deb", "zlib1g", "1:1.3", "Ubuntu Developers"))
        self.assertEqual(entry["externalRefs"][0]["referenceLocator"], "pkg:deb/ubuntu/zlib1g@1:1.3")

    def test_files_and_their_code(self):
        names = {file["fileName"]: file for file in self.document["files"]}
        self.assertEqual(set(names), {"./bin/cistern-server", "./README"})
        sums = {entry["algorithm"]: entry["checksumValue"] for entry in names["./README"]["checksums"]}
        self.assertEqual(sums["SHA256"], hashlib.sha256(b"read me").hexdigest())
        hashes = sorted(hashlib.sha1((self.tree / name).read_bytes()).hexdigest() for name in names)
        self.assertEqual(self.document["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"],
                         hashlib.sha1("".join(hashes).encode()).hexdigest())

    def test_the_same_inputs_give_the_same_bytes(self):
        self.assertEqual(json.dumps(self.make()), json.dumps(self.document))

    def test_a_file_of_no_package_is_an_error(self):
        with self.assertRaisesRegex(sbom.Failure, "README belongs to no package"):
            sbom.Owners().of([self.tree / "README"])

    def test_readers_of_spdx_accept_it(self):
        try:
            from spdx_tools.spdx.parser.parse_anything import parse_file
            from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
        except ImportError:
            self.skipTest("spdx-tools is not installed: pip install spdx-tools")
        path = self.tree.parent / f"{self.tree.name}.spdx.json"
        self.addCleanup(path.unlink)
        path.write_text(json.dumps(self.document))
        messages = validate_full_spdx_document(parse_file(str(path)))
        self.assertEqual([message.validation_message for message in messages], [])


if __name__ == "__main__":
    unittest.main()
