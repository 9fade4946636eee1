"""Listeners of a real worker's /events come and leave in every way; nobody else notices.

The worker keeps its default io_timeout (five seconds), so the test takes some ten.
"""

import socket
import struct
import threading
import time
import unittest

from support.fleet import LockStore, Pipeline, Worker
from support.kafka import Kafka
from support.processes import wait_until

PLACES = 8
LIMIT = 10.0  # seconds to a probe's answer on a busy machine; a server that hangs gives none


class Listener:
    def __init__(self, test, address, receive_buffer=None):
        self._socket = socket.socket()
        test.addCleanup(self._socket.close)
        if receive_buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(10)
        host, port = address.split(":")
        self._socket.connect((host, int(port)))
        self._socket.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")

    def events(self, wanted) -> int:
        """Reads until so many have begun, or the server closes; how many there were."""
        got = b""
        while got.count(b"data: ") < wanted and (more := self._socket.recv(65536)):
            got += more
        return got.count(b"data: ")

    def close(self):
        self._socket.close()

    def reset(self):
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def half_close(self):
        self._socket.shutdown(socket.SHUT_WR)


class Prober:
    """Asks for /metrics, /live and /ready all the while."""

    def __init__(self, test, worker):
        self.answers, self.failures, self.slowest = 0, [], 0.0
        self._worker, self._stop = worker, threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()
        test.addCleanup(self.stop)

    def _ask(self):
        while not self._stop.wait(0.05):
            for path in ("/metrics", "/live", "/ready"):
                begun = time.monotonic()
                status = self._worker.get(path, limit=LIMIT)[0]
                took = time.monotonic() - begun
                self.answers += 1
                self.slowest = max(self.slowest, took)
                # Whether it is ready is another matter, and a busy machine's.
                if status != 200 and not (path == "/ready" and status == 503):
                    self.failures.append((path, status, round(took, 2)))

    def stop(self):
        self._stop.set()
        self._thread.join()


class Listeners(unittest.TestCase):
    def setUp(self):
        kafka, locks = Kafka(self), LockStore(self, 3, "10s")
        orders = Pipeline(self, kafka, locks, "orders", 2)
        self.worker = Worker(self, [orders], "worker-1")
        self.worker.wait_ready()
        self.prober = Prober(self, self.worker)

    def listen(self, **options):
        return Listener(self, self.worker.address, **options)

    def wait_served(self):
        """A stream of one's own: a second event comes, too."""
        def served():
            listener = self.listen()
            try:
                return listener.events(2) == 2
            finally:
                listener.close()

        wait_until(served, 40, "a place for a new listener")

    def test_places_are_given_back_however_a_listener_leaves(self):
        for number in range(5 * PLACES):
            listener = self.listen()
            self.assertEqual(listener.events(1), 1)
            (listener.close, listener.reset, listener.half_close)[number % 3]()
        self.wait_served()
        # Those that stop reading for ever, without leaving.
        dead = [self.listen(receive_buffer=2048) for _ in range(PLACES + 1)]
        for listener in dead[:PLACES]:
            listener.events(1)
        self.wait_served()
        self.prober.stop()
        self.assertEqual(self.prober.failures, [])
        self.assertGreater(self.prober.answers, 30)
        print(f"{self.prober.answers} probes, the slowest {self.prober.slowest:.2f} s", end=" ")

    def test_all_places_are_taken_and_everybody_is_shown_something(self):
        living = [self.listen() for _ in range(PLACES)]
        for listener in living:
            self.assertEqual(listener.events(1), 1)
        self.assertEqual(self.listen().events(2), 1, "one event, and the server closes")
        for listener in living:
            self.assertEqual(listener.events(2), 2, "nobody was sent away for it")
        self.prober.stop()
        self.assertEqual(self.prober.failures, [])


if __name__ == "__main__":
    unittest.main()
