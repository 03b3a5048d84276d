"""Ctrl-C ends long calls, and what is left behind is defined. Threads and fleets that close.

Each case runs in a process of its own, which interrupts itself. Those of ENDLESS would not end without it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import cistern_ps as cs

HERE = pathlib.Path(__file__).parent

START = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(HERE)!r})
import numpy as np
import cistern_ps as cs
folder = sys.argv[1]

def interrupted(call, after=0.2):
    def interrupt():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        call()
        threading.Event().wait()  # for Ctrl-C, if the call has ended before
    except KeyboardInterrupt:
        pass

def table_of(fleet, rows):
    table = fleet.table("t", dim=4, rule=cs.Adam())
    values = np.ones((rows, 12), np.float32)
    return table, np.arange(rows), values
"""

CASES = {
    "pull": ("""
fleet = cs.local()
table, keys, _ = table_of(fleet, 1)
interrupted(lambda: table.pull(np.arange(8_000_000)))
print(table.pull(keys).shape)
""", "(1, 4)"),
    "push": ("""
fleet = cs.local()
table, keys, values = table_of(fleet, 2_000_000)
table.pull(keys[:1])
def push():
    while True:
        table.push(keys, values)
        fleet.abort()
interrupted(push)
try:
    fleet.commit()
except cs.Error:
    pass  # the push was cut: rows are missing
fleet.abort()
table.push(keys[:5], values[:5])
fleet.commit()
print(len(table) in (5, len(keys)))  # the other: Ctrl-C came when the push had just ended
""", "True"),
    "commit": ("""
fleet = cs.local(folder, servers=2)
table, keys, values = table_of(fleet, 1_000_000)
table.push(keys, values)
interrupted(lambda: fleet.commit(), 0.05)
table.push(np.array([2_000_000]), values[:1])  # waits for the commit
print(fleet.commit().number, len(table))
""", "2 1000001"),
    "scan and digests": ("""
fleet = cs.local()
table, keys, values = table_of(fleet, 300_000)
table.push(keys, values)
fleet.commit()
def read():
    while True:
        list(table.scan())
        fleet.digests()
interrupted(read, 0.5)
print(len(table))
""", "300000"),
}

# Servers that do not answer, and more samples than a test could read.
ENDLESS = {
    "a server that does not answer": ("""
with cs.servers.start(1) as own:
    def connect():
        fleet = cs.connect(own.addresses)
        return (fleet, *table_of(fleet, 10))
    writer, table, keys, values = connect()
    table.push(keys, values)
    writer.commit()
    readers = [connect() for _ in range(3)]
    own._processes[0].send_signal(signal.SIGSTOP)
    try:
        interrupted(lambda: readers[0][1].pull(keys))
        interrupted(lambda: readers[1][0].digests())
        interrupted(lambda: list(readers[2][1].scan()))
        interrupted(lambda: table.push(keys, values))
    finally:
        own._processes[0].send_signal(signal.SIGCONT)
    print(len(connect()[1]))
""", "10"),
    "data": ("""
import jobs_test
source = jobs_test.click_log(folder, 50_000)
interrupted(lambda: list(cs.data.norm([source] * 100_000, slots=2, batch=10**8)))
interrupted(lambda: list(cs.data.norm([source] * 100_000, slots=2, shuffle=1)))
data = cs.data.norm(source, slots=2, batch=100)
print(next(iter(data)).size, data.state_dict())
""", "100 {'epoch': 0, 'samples': 100}"),
    "evaluate and predict": ("""
import jobs_test
source = jobs_test.click_log(folder, 50_000)
model, many = jobs_test.small_model(source, epochs=1), [str(source)] * 100_000
fleet = cs.local()
cs.train(model, fleet=fleet)
run = cs.train(model, out=folder + "/run")
interrupted(lambda: cs.evaluate(model, fleet=fleet, data=many))
interrupted(lambda: cs.predict(run, data=many))
print(cs.evaluate(model, fleet=fleet)["samples"])
""", "50000"),
}


class CtrlC(unittest.TestCase):
    def test_it_ends_every_long_call(self):
        for name, (case, last) in {**CASES, **ENDLESS}.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-c", START + case, folder], capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (0, last + "\n"), done.stderr)


# Four threads that nobody ends are in calls, or hold the GIL, when the interpreter ends.
DAEMONS = """
import threading
import numpy as np
import cistern_ps as cs
table = cs.local().table("t", dim=4, rule=cs.Adam())
began = threading.Semaphore(0)
def use():
    while True:
        table.pull(np.arange(1000))
        list(table.scan())
        began.release()
for _ in range(4):
    threading.Thread(target=use, daemon=True).start()
for _ in range(100):
    began.acquire()
print("end")
"""


class Threads(unittest.TestCase):
    def test_daemon_threads_may_be_in_calls_when_python_ends(self):
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", DAEMONS], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))

    def test_a_fleet_that_is_closed_ends_the_calls_of_other_threads(self):
        for servers in (None, 1):
            with self.subTest(servers=servers):
                own = cs.servers.start(servers) if servers else None
                fleet = cs.connect(own.addresses) if own else cs.local(servers=2)
                table, ends = fleet.table("t", dim=8, rule=cs.Adam()), []
                table.pull(np.arange(2))
                table.rows.look_up(np.arange(2))

                calls = [lambda: table.pull(np.arange(100_000)), lambda: list(table.scan()),
                         lambda: table.rows.read(np.arange(10_000), True), lambda: table.rows.step(0.1, 1), fleet.digests]
                begun = threading.Barrier(len(calls) + 1, timeout=60)

                def use(call):
                    try:
                        call()
                        begun.wait()
                        while True:
                            call()
                    except cs.Error as error:
                        ends.append(str(error))

                threads = [threading.Thread(target=use, args=(call,)) for call in calls]
                for thread in threads:
                    thread.start()
                begun.wait()
                fleet.close()
                for thread in threads:
                    thread.join()
                self.assertEqual(len(ends), len(calls))
                self.assertTrue(all("closed" in end for end in ends), ends)
                if own:
                    own.stop()


if __name__ == "__main__":
    unittest.main()
