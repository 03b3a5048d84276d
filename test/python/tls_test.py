"""Servers behind TLS, from Python: certificates as arguments and from the environment, and what roles allow."""

import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import numpy as np

import cistern_ps as cs
from cistern_ps import programs


class Tls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.certs = pathlib.Path(folder.name, "certs")
        self.run_certs("init")
        self.run_certs("issue", "server", "--role", "server", "--hosts", "127.0.0.1")
        for role in ("reader", "worker"):
            self.run_certs("issue", role, "--role", role)
        with mock.patch.dict(os.environ, self.environment("server")):
            self.servers = cs.servers.start(2)
        self.addCleanup(self.servers.stop)

    def run_certs(self, *words):
        subprocess.run([programs.find("cistern"), "certs", *words, "--certs", self.certs], check=True, capture_output=True)

    def environment(self, name):
        return {"CISTERN_TLS_CA": str(self.certs / "ca.crt"), "CISTERN_TLS_CERT": str(self.certs / f"{name}.crt"),
                "CISTERN_TLS_KEY": str(self.certs / f"{name}.key")}

    def connect(self, name):
        return cs.connect(self.servers.addresses, tls_ca=self.certs / "ca.crt", tls_cert=self.certs / f"{name}.crt",
                          tls_key=self.certs / f"{name}.key")

    def test_a_worker_trains_and_a_reader_reads(self):
        keys = np.arange(1, 100)
        with self.connect("worker") as fleet:
            table = fleet.table("t", dim=2)
            table.push(keys, np.full((99, 2), 0.5, np.float32))
            fleet.commit()
        with self.connect("reader") as fleet:
            self.assertTrue((fleet.table("t").pull(keys) == 0.5).all())
            with self.assertRaisesRegex(cs.Error, "needs the role worker"):
                fleet.claim()

    def test_functions_take_the_environment(self):
        with mock.patch.dict(os.environ, self.environment("reader")):
            self.assertEqual(len(cs.status(self.servers.addresses)["servers"]), 2)

    def test_without_certificates_the_error_says_so(self):
        with self.assertRaisesRegex(cs.Error, "the server requires TLS"):
            cs.connect(self.servers.addresses, timeout=1)
        with self.assertRaisesRegex(cs.Error, "none.crt"):
            self.connect("none")


if __name__ == "__main__":
    unittest.main()
