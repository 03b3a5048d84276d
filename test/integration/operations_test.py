"""What the system around the programs brings along: names with '@', ',' and bytes that are not UTF-8, file systems
without locks, containers, host names, permissions. Each works, or is refused with a fix before anything is written.
"""

import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

from mistakes_test import clicks, write
from programs import BIN, finish, run

NO_LOCKS = BIN / "libcistern_no_locks.so"
NOT_UTF8 = os.fsdecode(b"u\xe9")


class Operations(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        write(cls.folder / "train.csv", clicks(600, seed=1))
        write(cls.folder / "test.csv", clicks(200, seed=2))
        result = run("cistern", "train", cls.folder / "train.csv", "--model", "deepfm", "--out", cls.folder / "run")
        assert result.code == 0, result

    def run_ok(self, *words, **options):
        result = run(*words, **options)
        self.assertEqual(result.code, 0, result)
        return result

    def work_in(self, name):
        """A folder of that name with the tables and the run."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        for table in ("train.csv", "test.csv"):
            shutil.copy(self.folder / table, folder)
        shutil.copytree(self.folder / "run", folder / "run")
        return folder

    def test_an_at_sign_in_a_path(self):
        folder = self.work_in("bob@corp.com/models@7")
        serving = self.folder / "serving-at"
        self.run_ok("cistern", "export", "serving", folder / "run", "--out", serving)
        self.assertEqual(len(list(serving.glob("*/recipe.json"))), 1)
        followed = self.folder / "followed-at"
        self.run_ok("cistern", "publish", folder / "run", "--follow", folder / "run", "--out", followed, "--once")
        self.assertEqual(len(list(followed.glob("*/recipe.json"))), 1)
        # A run whose own name ends like a commit, and a commit of it.
        odd = folder / "run@1"
        (folder / "run").rename(odd)
        newest = self.run_ok("cistern", "ckpt", "ls", odd, "--json").json()["commits"][-1]["commit"]
        for state in (odd, f"{odd}@{newest}"):
            self.run_ok("cistern", "ckpt", "diff", state, f"{odd}@{newest}")
            out = self.folder / f"state-{pathlib.Path(state).name}"
            self.run_ok("cistern", "export", "serving", odd / "model.json", "--state", state, "--out", out)
            self.assertEqual(len(list(out.glob("*/recipe.json"))), 1, state)
        missing = run("cistern", "ckpt", "diff", odd, f"{odd}@999")
        self.assertEqual(missing.code, 2, missing)
        self.assertIn("has no commit 999", missing.err)

    def test_a_comma_in_a_path(self):
        folder = self.work_in("lr=0.1,dim=8")
        (self.folder / "lr=0.1").mkdir()  # of another run
        train, test, other = folder / "train.csv", folder / "test.csv", self.folder / "test.csv"
        output = self.folder / "comma.csv"
        self.run_ok("cistern", "predict", folder / "run", "--input", f"{test},{other}", "--output", output)
        self.assertEqual(len(output.read_text().splitlines()), 2 * 200 + 1)
        self.run_ok("cistern", "predict", folder / "run", "--input", test, "--input", other, "--output",
                    self.folder / "repeated.csv")
        self.assertEqual((self.folder / "repeated.csv").read_bytes(), output.read_bytes())
        self.run_ok("cistern", "data", "convert", "--input", train, "--label", "label", "--out", self.folder / "c1")
        self.run_ok("cistern", "report", folder / "run", self.folder / "run", "--out", self.folder / "page.html")
        more = self.run_ok("cistern", "train", folder / "run", "--resume", "--more", f"{test},{other}", "--json").json()
        self.assertGreater(more["samples"], 400)
        wrong = run("cistern", "predict", folder / "run", "--input", f"{folder}/absent.csv", "--output", output)
        self.assertEqual(wrong.code, 2, wrong)
        self.assertIn("a comma separates paths", wrong.err)

    def test_bytes_that_are_not_utf8(self):
        out = self.folder / NOT_UTF8
        for words in (("train", self.folder / "train.csv"), ("init", self.folder / "train.csv")):
            refused = run("cistern", *words, "--out", out, errors="surrogateescape")
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("is not UTF-8", refused.err)
            self.assertIn("fix: choose another name", refused.err)
            self.assertFalse(out.exists())
        # What names nothing in JSON works.
        odd = self.work_in(NOT_UTF8)
        self.run_ok("cistern", "predict", odd / "run", "--input", odd / "test.csv", "--output", odd / "p.csv",
                    errors="surrogateescape")
        self.run_ok("cistern", "export", "serving", odd / "run", "--out", odd / "serving", errors="surrogateescape")
        # A prefix of names that a manifest lists; its folder is not in it.
        self.run_ok("cistern", "export", "hugectr", odd / "run", "--out", odd / "prefix", errors="surrogateescape")
        prefix = run("cistern", "export", "hugectr", odd / "run", "--out", odd / NOT_UTF8, errors="surrogateescape")
        self.assertEqual(prefix.code, 2, prefix)
        self.assertEqual(list(odd.glob(f"{NOT_UTF8}*")), [])
        more = run("cistern", "train", odd / "run", "--resume", "--more", odd / "test.csv", errors="surrogateescape")
        self.assertEqual(more.code, 2, more)
        self.assertIn("--more: the data: '", more.err)

    def test_columns_that_are_not_utf8(self):
        table = self.folder / "latin1.csv"
        lines = ['label,caf\xe9,"pa""ys"']
        lines += [",".join((str(i % 2), "\xe9t\xe9" if i % 3 else "na\xefve", str(i % 5))) for i in range(300)]
        table.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
        out = self.folder / "latin1"
        self.run_ok("cistern", "train", table, "--label", "label", "--out", out, errors="surrogateescape")
        for words in (("init", table, "--label", "label", "--out", self.folder / "init-latin1", "--json"),
                      ("predict", out, "--input", table, "--output", self.folder / "p.csv", "--json"),
                      ("report", out, "--json"),
                      ("data", "inspect", out / "data/train/file_list.txt", "--json")):
            result = self.run_ok("cistern", *words, errors="surrogateescape")
            json.loads(result.out)

    def test_the_report_shows_what_keys_are(self):
        run_folder, page = self.folder / "run", self.folder / "keys.html"

        def values():
            return re.findall(r'<th scope="row">(?:user|city)</th><td>(key \d+|[^<]*)</td>', page.read_text())

        self.run_ok("cistern", "report", run_folder, "--importance", "--data", run_folder / "data/train/file_list.txt",
                    "--out", page)
        self.assertTrue(any(value.startswith("key ") for value in values()), values())
        self.run_ok("cistern", "report", run_folder, "--input", self.folder / "train.csv", "--out", page)
        self.assertNotEqual(values(), [])
        for value in values():
            self.assertRegex(value, r"^(u\d+|paris|rome|oslo|\(rare values\))$")

    def test_demo_in_a_folder_with_a_quote(self):
        odd = self.folder / 'q"d\\e'
        odd.mkdir()
        self.run_ok("cistern", "demo", "--samples", 4000, env={**os.environ, "TMPDIR": str(odd)})
        refused = run("cistern", "demo", "--samples", 4000, "--dir", self.folder / f"demo-{NOT_UTF8}",
                      errors="surrogateescape")
        self.assertEqual(refused.code, 2, refused)
        self.assertRegex(refused.err, r"the folder: '.*\(--dir\)")

    def test_no_output_replaces_a_device_or_a_pipe(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for words in (("report", self.folder / "run", "--out", pipe),
                      ("export", "onnx", self.folder / "run", "--out", pipe),
                      ("predict", self.folder / "run", "--input", self.folder / "test.csv", "--output", pipe)):
            refused = run("cistern", *words)
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("is a device or a pipe and would be replaced", refused.err)
            self.assertTrue(pipe.is_fifo())

    def test_a_file_system_without_locks(self):
        environment = {**os.environ, "LD_PRELOAD": str(NO_LOCKS)}
        server = run("cistern-server", "--port=0", f"--data_dir={self.folder / 'unlocked'}", env=environment)
        self.assertEqual(server.code, 1, server)
        self.assertIn("mount NFS as version 4", server.err)
        doctor = run("cistern", "doctor", "--data-dir", self.folder, env=environment)
        self.assertRegex(doctor.out, r"(?m)^problem .*does not lock files")
        self.assertNotIn("does not lock files", run("cistern", "doctor", "--data-dir", self.folder).out)

    def test_json_may_stand_before_the_command(self):
        serving = self.folder / "serving-json"
        self.run_ok("cistern", "export", "serving", self.folder / "run", "--out", serving)
        for words in (("--json", "serving", "ls", serving), ("serving", "--json", "ls", serving)):
            self.assertEqual(len(self.run_ok("cistern", *words).json()["versions"]), 1)
        failed = run("cistern", "--json", "status", "--servers", "127.0.0.1")
        self.assertEqual(failed.json()["exit_code"], 2)

    def test_an_unknown_host_name(self):
        address = "no.such.host.invalid:7700"
        for words in (("status", "--servers", address, "--timeout", 1),
                      ("save", "--servers", address, "--name", "a", "--connect-timeout", 1)):
            result = run("cistern", *words)
            self.assertEqual(result.code, 3, result)
            self.assertIn("fix: the host name 'no.such.host.invalid' cannot be resolved", result.err)

    def test_a_quota_of_processors(self):
        """A container's control group, as bind mounts show it."""
        group = self.folder / "group"
        group.mkdir()
        for name, text in (("cpu.max", "50000 100000"), ("memory.max", "314572800"), ("memory.current", "104857600")):
            (group / name).write_text(text + "\n")
        script = f'mount --bind "{group}" /sys/fs/cgroup && exec "$@"'
        inside = ("unshare", "-rm", "bash", "-c", script, "bash")
        if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("this user cannot make a mount namespace")

        def run_inside(*words):
            environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "GOMP_SPINCOUNT")}
            return finish(subprocess.Popen([*inside, str(BIN / "cistern"), *map(str, words)], text=True,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           env=environment))

        self.assertEqual(run_inside("version", "--json").json()["cores"], 1)
        doctor = run_inside("doctor").out
        self.assertRegex(doctor, r"processor .*1 core\b")
        self.assertRegex(doctor, r"memory .*200\.0 MiB of 300\.0 MiB")
        large = run_inside("train", self.folder / "run/model.json", "--out", self.folder / "large",
                           "--set", "layers.fc1.fc_param.num_output=200000", "--set", "solver.batchsize=20000",
                           "--set", "solver.batchsize_eval=20000")
        self.assertEqual(large.code, 2, large)
        self.assertIn("300.0 MiB", large.err)

    def test_folders_and_ports_of_somebody_else(self):
        run_of_another = self.folder / "secret"
        serving = self.folder / "serving-secret"
        shutil.copytree(self.folder / "run", run_of_another)
        self.run_ok("cistern", "export", "serving", self.folder / "run", "--out", serving)
        # For root, a namespace in which it has no rights but those of a file's owner.
        inside = ("unshare", "-U") if os.geteuid() == 0 else ()
        if inside and subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("this user cannot make a user namespace")

        def refuse(what, *words):
            refused = finish(subprocess.Popen([*inside, str(BIN / words[0]), *map(str, words[1:])], text=True,
                                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE))
            self.assertEqual(refused.code, 2, refused)
            self.assertIn(what, refused.err)
            self.assertNotIn("publish the newest commit again", refused.err)

        data = ("--input", self.folder / "test.csv", "--output", self.folder / "secret.csv")
        for folder, command in ((run_of_another / "model", ("predict", run_of_another, *data)),
                                (run_of_another, ("predict", run_of_another, *data)),
                                (run_of_another, ("train", run_of_another, "--resume")),
                                (serving, ("predict", serving, *data)), (serving, ("serve", serving))):
            folder.chmod(0)
            try:
                refuse(f"cannot open the folder {folder}: Permission denied; grant this user access", "cistern", *command)
            finally:
                folder.chmod(0o755)
        rows = next(serving.glob("*/*.rows"))
        rows.chmod(0)
        refuse(f"cannot open {rows}: Permission denied; grant this user access", "cistern", "serving", "verify",
               serving)
        limit = pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
        if limit.exists() and int(limit.read_text()) > 99:
            refuse("port 99 on 127.0.0.1 cannot be bound: Permission denied; ports below 1024 need root",
                   "cistern-server", "--port=99")

    def test_what_passes_by_itself_ends_a_server_with_1(self):
        """Then a supervisor starts it again (deploy/systemd); with 2 it waits for a person."""
        link, key = self.folder / "tls.crt", self.folder / "tls.key"
        link.symlink_to("..data/tls.crt")
        key.write_text("-----BEGIN PRIVATE KEY-----")
        late_files = ("--tls_ca", link, "--tls_cert", link, "--tls_key", key)
        for code, flags, reason in (
                (1, ("--bind=nosuch.invalid", "--insecure-remote"), "nosuch.invalid' cannot be looked up"),
                (1, ("--bind=nosuch.invalid",), "nosuch.invalid' cannot be looked up"),
                (1, late_files, f"{link}: it is a symbolic link to ..data/tls.crt, which is not there (--tls_cert)"),
                (2, ("--bind=256.0.0.1",), "'256.0.0.1' is neither an address nor a host name"),
                (2, ("--bind=[::1", "--insecure-remote"), "'[::1' is neither an address nor a host name"),
                (2, ("--bind=0.0.0.0",), "--bind=0.0.0.0 admits other machines, which needs TLS")):
            server = run("cistern-server", "--port=0", *flags)
            self.assertEqual(server.code, code, server)
            self.assertIn(reason, server.err)
        for bind, code in (("nosuch.invalid", 3), ("256.0.0.1", 2), ("[::1", 2), ("", 2)):
            for flags in ((), ("--insecure-remote",)):
                serve = run("cistern", "serve", self.folder / "none", "--port", 0, "--grpc-port", 0, "--bind", bind,
                            *flags)
                self.assertEqual(serve.code, code, serve)
                self.assertIn(f"'{bind}' ", serve.err)
                self.assertIn("(--bind)", serve.err)

    def test_another_program_at_the_address_of_a_server(self):
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as other:
            threading.Thread(target=other.serve_forever, daemon=True).start()
            status = run("cistern", "status", "--servers", f"127.0.0.1:{other.server_port}", "--timeout", 5)
            other.shutdown()
        self.assertEqual(status.code, 3, status)
        self.assertIn("fix: check that a cistern-server listens at this address", status.err)

    def test_numbers_of_threads_that_no_machine_has(self):
        """The OpenMP library crashed with the first, and ended the process with the others."""
        for name, value in (("OMP_NUM_THREADS", "99999"), ("OMP_STACKSIZE", "16"), ("OMP_STACKSIZE", "999999999")):
            predicted = run("cistern", "predict", self.folder / "run", "--input", self.folder / "test.csv", "--output",
                            self.folder / f"{name}-{value}.csv", env={**os.environ, name: value})
            self.assertEqual(predicted.code, 0, predicted)
            self.assertEqual(predicted.err.count(f"note: {name}={value} is"), 1, predicted)
        for words in (("predict", self.folder / "run", "--input", self.folder / "test.csv"),
                      ("serve", self.folder), ("verify", self.folder / "run"), ("data", "criteo")):
            refused = run("cistern", *words, "--threads", 1025)
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("--threads: 1025 is more than 1024, the limit", refused.err)


if __name__ == "__main__":
    unittest.main()
