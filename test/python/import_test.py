"""The module beside other packages that bring their own protobuf, abseil, OpenSSL, Arrow or OpenMP, in either order.

Packages that scripts/test.sh has installed into build/ for other tests are used too; missing ones are skipped by name.
"""

import os
import pathlib
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

USE = """
import numpy as np
fleet = cs.local(servers=2)
table = fleet.table("t", dim=4, rule=cs.Adam())
table.push(np.arange(9), np.ones((9, 4), np.float32))
fleet.commit()
with cs.servers.start(1) as servers, cs.connect(servers.addresses) as remote:
    assert remote.table("t", dim=4).pull(np.arange(3)).shape == (3, 4)
try:
    cs.connect("127.0.0.1:1", timeout=0.1)
except cs.UnreachableError:
    pass
fleet.close()
print("good")
"""

OTHERS = {
    "torch": "import torch; torch.ones(3) @ torch.ones(3)",
    "pyarrow": "import pyarrow.parquet, hashlib; hashlib.sha256(b'x').hexdigest()",
    "grpc": "import grpc; grpc.insecure_channel('127.0.0.1:1')",
    "onnxruntime": "import onnxruntime",
    "google.protobuf": "from google.protobuf import descriptor_pb2; descriptor_pb2.FileDescriptorProto()",
    "tensorflow": "import tensorflow",
    "jax": "import jax.numpy as jnp; jnp.ones(3) @ jnp.ones(3)",
    "ssl": "import ssl, hmac; ssl.create_default_context()",
}


class Imports(unittest.TestCase):
    def python(self, program):
        paths = [os.environ.get("PYTHONPATH", ""), str(ROOT / "build/tritonclient"), str(ROOT / "build/onnxruntime")]
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": ":".join(p for p in paths if p)})

    def test_the_module_works_before_and_after_others(self):
        tried = 0
        for name, use in OTHERS.items():
            with self.subTest(name):
                alone = self.python(use)
                if alone.returncode != 0:
                    print(f"skipped: {name} is missing here")
                    continue
                for program in (f"{use}\nimport cistern_ps as cs\n{USE}", f"import cistern_ps as cs\n{use}\n{USE}{use}"):
                    done = self.python(program)
                    self.assertEqual((done.returncode, done.stdout[-5:]), (0, "good\n"), program + done.stderr)
                    self.assertNotIn("leaked", done.stderr)
                tried += 1
        self.assertGreater(tried, 0)

    def test_torch_and_pandas_are_not_imported_by_the_package(self):
        done = self.python("import sys, cistern_ps; print([m for m in ('torch', 'pandas', 'pyarrow') if m in sys.modules])")
        self.assertEqual(done.stdout, "[]\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
