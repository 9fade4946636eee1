"""Workers in trouble: contention, frozen, nodes lost, retries, dead letters, a forgotten token.

Everything that the dashboard is to show happens within `seconds`, under Prometheus' eyes.
"""

import random
import signal
import threading
import time

from support.fleet import LockStore, Pipeline, Prometheus, Service, Worker, total
from support.kafka import Kafka
from support.processes import wait_until

INTERVAL = 0.5  # seconds between two scrapes
RETRY = "retry: {attempts: 3, give_up_after: 0s, backoff: {initial: 50ms, max: 200ms}}\n"
DEAD = "dead_letter: {topic: dead.letters}\n"


class Storm:
    def __init__(self, test, seconds):
        self._scale, self._random = seconds / 25, random.Random(7)
        self._calls, self._next, self._stop = {}, 0, threading.Event()
        self.kafka = Kafka(test)
        self.locks = LockStore(test, 5, "2s")
        self.service = Service(test, self._answer)
        self.kafka.create_topic("dead.letters", 1)
        handler = f'handler:\n  http: {{url: "{self.service.url}", idempotent: true}}\n'
        self.orders = Pipeline(test, self.kafka, self.locks, "orders", 6, handler + RETRY + DEAD,
                               ttl="2s", session=1500)  # fmt: skip
        self.mails = Pipeline(test, self.kafka, self.locks, "mails", 3, DEAD, "2s", 1500)
        self.pipelines = [self.orders, self.mails]
        self.workers = [Worker(test, self.pipelines, f"worker-{i}") for i in (1, 2, 3)]
        addresses = [worker.address for worker in self.workers]
        self.prometheus = Prometheus(test, addresses, interval=f"{INTERVAL * 1000:.0f}ms")
        self.start = time.time()
        for worker in self.workers:
            worker.wait_ready()
        self._run()
        self.end = time.time()

    def _answer(self, order):
        number = int(order["order_id"][2:])
        calls = self._calls[number] = self._calls.get(number, 0) + 1
        if number % 41 == 3:
            return 500, 0  # for ever: a dead letter
        if number % 11 == 5 and calls < 2:
            return 503, 0.02
        return 200, 0.03 + 0.1 * (number % 5 == 0)

    def _feed(self):
        """Orders with a tenth of repeats on other partitions, and mails, every 100 ms."""
        while not self._stop.wait(0.1):
            fresh = range(self._next, self._next + 10)
            self._next += 10
            self.orders.send(fresh)
            self.mails.send(fresh)
            for order in (*self._random.choices(fresh, k=2), self._random.randrange(self._next)):
                self.orders.send_order(order, self._random.randrange(6))

    def _seen(self):
        """How often Prometheus has asked the first worker, whether it answered or not."""
        first = self.workers[0].address
        asked = self.prometheus.query(f'count_over_time(up{{instance="{first}"}}[1h])')
        return asked[0][1] if asked else 0

    def _watch(self, seconds):
        """Until Prometheus has looked for so long: what happens meanwhile is on the dashboard."""
        enough = self._seen() + seconds * self._scale / INTERVAL
        wait_until(lambda: self._seen() >= enough, 60 + 4 * seconds * self._scale, "scrapes")

    def _run(self):
        feeder = threading.Thread(target=self._feed)
        feeder.start()
        try:
            self._watch(4)
            self._freeze_a_worker()
            self._watch(2)
            self._lose_a_node()
            self._lose_the_quorum()
            self._refuse_dead_letters()
            self._forget_a_token()
            self._watch(3)
        finally:
            self._stop.set()
            feeder.join()

    def _freeze_a_worker(self):
        """Until others have taken its leases over; again, should they have ended just before."""
        worker, others = self.workers[2], self.workers[:2]

        def taken_over():
            return sum(total(other, "fencepost_lock_takeovers_total") for other in others)

        def expired():
            return total(worker, "fencepost_lock_expirations_total")

        def lost_its_leases():
            wait_until(lambda: total(worker, "fencepost_locks_held") > 0, what="leases")
            taken, before, enough = taken_over(), expired(), self._seen() + 8 / INTERVAL
            worker.process.send(signal.SIGSTOP)
            wait_until(lambda: taken_over() > taken or self._seen() > enough, 60, "takeovers")
            worker.process.send(signal.SIGCONT)
            worker.wait_ready()
            return taken_over() > taken and expired() > before

        wait_until(lost_its_leases, 60, "leases that expire and are taken over")

    def _lose_a_node(self):
        self.locks.nodes[4].process.kill()
        self._watch(3)
        self.locks.nodes[4].start()  # empty
        self._watch(2)

    def _lose_the_quorum(self):
        frozen = self.locks.nodes[:3]
        for node in frozen:
            node.process.send(signal.SIGSTOP)
        available = "fencepost_redis_quorum_available"
        wait_until(lambda: total(self.workers[0], available) == 0, 60, "the quorum to be lost")
        self._watch(2)
        for node in frozen:
            node.process.send(signal.SIGCONT)
        self._watch(1)

    def _refuse_dead_letters(self):
        self.kafka.set_topic("dead.letters", max_message_bytes=100)
        self.mails.send_text('{"amount": 1}')
        self.mails.send([0], amount=77)  # the id of another content
        refused = "fencepost_dead_letter_errors_total"
        wait_until(lambda: sum(total(w, refused) for w in self.workers) > 3, what="refused letters")
        self._watch(1)
        self.kafka.set_topic("dead.letters", max_message_bytes=1_000_000)
        self._watch(1)

    def _forget_a_token(self):
        """A lease under a late token is deleted by hand, so that tokens regress; and repeats."""
        query = 'fencepost_lock_acquisitions_total{pipeline="mails",result="contended"}'

        def contended():
            return sum(value for _, value in self.prometheus.query(query))

        key, before = "fencepost:{mails}:o-1000000", contended()
        self.locks.hold(key)
        self.mails.send([1_000_000])
        wait_until(lambda: contended() > before + 1, what="the contention")
        self.locks.command("DEL", key)
        self.mails.send(range(self._next - 40, self._next - 20))
        self._watch(2)
