"""A fleet behind TLS: the same bits as in plain text, and only those get in who belong."""

import json
import os
import signal
import socket
import ssl
import subprocess
import unittest

from programs import Servers, finish, run, start, wait_for
from workers import WorkersTest


class Tls(WorkersTest):

    def setUp(self):
        super().setUp()
        self.certs = self.folder / "certs"
        self.run_ok("cistern", "certs", "init", "--certs", self.certs)
        self.issue("server", "server", "--hosts", "127.0.0.1")
        for role in ("reader", "worker", "admin"):
            self.issue(role, role)

    def issue(self, name, role, *flags):
        return self.run_ok("cistern", "certs", "issue", name, "--role", role, "--certs", self.certs, *flags)

    def flags(self, name, certs=None, ca=None):
        certs = certs or self.certs
        return ["--tls-ca", (ca or certs) / "ca.crt", "--tls-cert", certs / f"{name}.crt", "--tls-key", certs / f"{name}.key"]

    def fleet(self, count=2, **options):
        return Servers(count, self.folder, flags=[str(flag) for flag in self.flags("server")], durability="commit",
                       **options)

    def audit(self, server=0):
        return [json.loads(line) for line in
                (self.folder / "saved" / f"audit-{server}.jsonl").read_text().splitlines()]

    def run_code(self, code, *words):
        return self.expect(run(*words), code)

    def digests(self, fleet, *flags):
        status = self.run_ok("cistern", "status", "--servers", fleet.addresses, "--digest", "--json", *flags).json()
        return {table["name"]: (table["rows"], table["digest"]) for table in status["tables"]}

    def test_workers_train_to_the_bits_of_plain_text(self):
        with Servers(2, self.folder) as fleet:
            self.train("plain", fleet, 2)
            plain = self.digests(fleet)
        with self.fleet() as fleet:
            self.train("secure", fleet, 2, *self.flags("worker"))
            self.assertEqual(self.digests(fleet, *self.flags("reader")), plain)
        methods = {line["method"] for line in self.audit()}
        self.assertLessEqual({"ClaimEpoch", "CreateTables", "BeginPass", "SealPass", "PreparePass", "Decide",
                              "CommitPass"}, methods)
        self.assertEqual({(line["caller"], line["roles"], line["outcome"]) for line in self.audit()},
                         {("worker", "worker", "OK")})

    def test_roles(self):
        with self.fleet() as fleet:
            self.train("run", fleet, 1, *self.flags("worker"))
            before = self.digests(fleet, *self.flags("reader"))
            save = ["cistern", "save", "--servers", fleet.addresses, "--to", "monday"]
            for role in ("reader", "worker"):
                refused = self.run_code(2, *save, *self.flags(role))
                self.assertIn("needs the role admin", refused.err)
                self.assertIn(f"'{role}' gives {role}", refused.err)
                self.assertIn("cistern certs issue --role=admin", refused.err)
            self.run_ok(*save, *self.flags("admin"))
            trained = finish(start(*self.words("run-2", fleet, 0, 1, "127.0.0.1:1", "--continue", *self.flags("reader"))))
            self.assertNotEqual(trained.code, 0)
            self.assertIn("needs the role worker", trained.err)
            self.assertEqual(self.digests(fleet, *self.flags("reader")), before)
        refusals = [line for line in self.audit() if line["outcome"] == "PERMISSION_DENIED"]
        self.assertIn(("reader", "Save"), [(line["caller"], line["method"]) for line in refusals])
        self.assertIn("refused Save from 'reader' at ipv4:127.0.0.1",
                      (self.folder / "server-0-of-2.log").read_text())

    def test_strangers_stay_out(self):
        other = self.folder / "other"
        self.run_ok("cistern", "certs", "init", "--certs", other)
        self.run_ok("cistern", "certs", "issue", "admin", "--role", "admin", "--certs", other)
        with self.fleet(1) as fleet:
            status = ["cistern", "status", "--servers", fleet.addresses, "--timeout", 3]
            self.run_code(3, *status)  # plain text
            self.run_code(3, *status, *self.flags("admin", other))  # each side refuses the other
            self.run_code(2, *status, *self.flags("admin", other, self.certs))  # refused by the client itself
            self.run_ok(*status, *self.flags("reader"))
            for certificate in (None, other / "admin", self.certs / "reader"):
                # Only the last one gets the first bytes of HTTP/2.
                self.assertEqual(self.settings_from(fleet.all[0].port, certificate) != b"",
                                 certificate == self.certs / "reader", certificate)

    def settings_from(self, port, certificate):
        """What a server sends a TLS client with this certificate; b"" if it closes the connection."""
        context = ssl.create_default_context(cafile=str(self.certs / "ca.crt"))
        context.set_alpn_protocols(["h2"])
        if certificate:
            context.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as raw, \
                    context.wrap_socket(raw, server_hostname="127.0.0.1") as secure:
                secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
                return secure.recv(1)
        except (ssl.SSLError, ConnectionError):
            return b""

    def test_unfinished_handshakes_keep_nobody_out(self):
        hello = self.client_hello()
        with self.fleet(1) as fleet:
            port = fleet.all[0].port
            status = ["cistern", "status", "--servers", fleet.addresses, *self.flags("reader")]
            started = [b"", hello[:1], hello[:-1], hello, b"\x16\x03\x01\xff\xff" + b"a" * 1000, b"GET / HTTP/1.1\r\n\r\n",
                       os.urandom(300)]
            open_ends = []
            for i in range(60 * len(started)):
                end = socket.create_connection(("127.0.0.1", port), timeout=30)
                self.addCleanup(end.close)
                open_ends.append(end)
                try:
                    end.sendall(started[i % len(started)])
                except ConnectionError:
                    pass
                if i % 100 == 0:
                    self.run_ok(*status)
            self.run_ok(*status)
            for end in open_ends:  # the server ends them all
                try:
                    while end.recv(4096):
                        pass
                except ConnectionError:
                    pass
            self.run_ok(*status)

    @staticmethod
    def client_hello():
        """The first message of a TLS client."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def test_other_addresses_need_certificates(self):
        server = ["cistern-server", "--port=0", "--bind=0.0.0.0"]
        refused = finish(start(*server))
        self.assertEqual(refused.code, 2)
        self.assertIn("needs TLS", refused.err)
        process = start(*server, *self.flags("server"))
        self.addCleanup(self.end, process)
        port = int(process.stdout.readline().split("port=")[1].split()[0])
        self.run_ok("cistern", "status", "--servers", f"127.0.0.1:{port}", *self.flags("reader"))
        process.send_signal(signal.SIGTERM)
        self.assertNotIn("without encryption", finish(process).err)
        for flags, code, words in ((self.flags("server")[:4], 2, "both a certificate and its key"),
                                   (self.flags("server")[2:], 2, "authority"),
                                   (self.flags("none"), 1, "none.crt")):  # they may come
            result = finish(start(*server, *flags))
            self.assertEqual(result.code, code, result)
            self.assertIn(words, result.err)

    def test_workers_on_other_machines_need_certificates(self):
        with self.fleet(1) as fleet:
            words = self.words("run", fleet, 0, 2, "10.0.0.1:7790", *self.flags("worker")[:0])
            self.assertIn("--tls-ca", finish(start(*words)).err)

    def test_a_worker_without_the_role_does_not_join(self):
        with self.fleet(1) as fleet:
            self.peers = "127.0.0.1:1"
            workers = [start(*self.words("run", fleet, rank, 2, self.peers, *self.flags(role)))
                       for rank, role in ((0, "worker"), (1, "reader"))]
            for worker in workers:
                self.addCleanup(self.end, worker)
            self.assertIn("does not make it a worker of cluster", finish(workers[1]).err)

    def test_renewed_certificates_are_used_without_a_restart(self):
        with self.fleet(1) as fleet:
            before = self.serial(fleet)
            self.run_ok("cistern", "certs", "renew", "server", "--certs", self.certs)
            wait_for(lambda: self.serial(fleet) != before, "the renewed certificate")
            self.run_ok("cistern", "status", "--servers", fleet.addresses, *self.flags("reader"))
        listed = self.run_ok("cistern", "certs", "ls", "--certs", self.certs, "--json").json()["certificates"]
        self.assertEqual([entry["file"] for entry in listed], ["ca", "admin", "reader", "server", "worker"])
        self.assertTrue(all(entry["accepted"] for entry in listed))

    def test_other_programs_read_the_certificates(self):
        def openssl(*words):
            done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        self.issue("ps", "server", "--hosts", "ps-0,10.0.0.7", "--cluster", "ads")
        text = openssl("x509", "-noout", "-text", "-in", self.certs / "ps.crt")
        for words in ("Issuer: CN = Cistern authority", "Subject: CN = ps", "DNS:ps-0, IP Address:10.0.0.7",
                      "URI:cistern://ads/server", "TLS Web Server Authentication", "CA:FALSE", "prime256v1"):
            self.assertIn(words, text)
        self.assertNotIn("TLS Web Server Authentication",
                         openssl("x509", "-noout", "-text", "-in", self.certs / "worker.crt"))
        authority = self.certs / "ca.crt"
        openssl("verify", "-x509_strict", "-CAfile", authority, "-purpose", "sslserver", self.certs / "ps.crt")
        openssl("verify", "-x509_strict", "-CAfile", authority, "-purpose", "sslclient", self.certs / "worker.crt")

    def serial(self, fleet):
        """The serial number of the certificate that server 0 shows."""
        shown = subprocess.run(
            ["openssl", "s_client", "-connect", fleet.all[0].address, "-CAfile", self.certs / "ca.crt", "-cert",
             self.certs / "reader.crt", "-key", self.certs / "reader.key"],
            input="", capture_output=True, text=True, check=False).stdout
        text = subprocess.run(["openssl", "x509", "-noout", "-serial"], input=shown, capture_output=True, text=True,
                              check=False).stdout
        return text.strip()

    def test_the_environment_names_the_files(self):
        names = dict(zip(("CISTERN_TLS_CA", "CISTERN_TLS_CERT", "CISTERN_TLS_KEY"),
                         [str(path) for path in self.flags("worker")[1::2]]))
        with self.fleet(1) as fleet:
            for words in (("status",), ("top", "--count", 1)):
                result = finish(start("cistern", *words, "--servers", fleet.addresses, env={**os.environ, **names}))
                self.assertEqual(result.code, 0, result)
            demo = finish(start("cistern", "demo", "--samples", 4000, env={**os.environ, **names}))
            self.assertEqual(demo.code, 0, demo)  # in plain text, on loopback
            audit = self.folder / "own-audit.jsonl"
            servers = {**names, "CISTERN_TLS_CERT": str(self.certs / "server.crt"),
                       "CISTERN_TLS_KEY": str(self.certs / "server.key")}
            with Servers(1, self.folder, flags=[f"--audit_log={audit}"], env={**os.environ, **servers}) as other:
                self.run_ok("cistern", "status", "--servers", other.addresses, *self.flags("reader"))
                self.assertTrue(audit.exists())


if __name__ == "__main__":
    unittest.main()
