"""Tests of one class that run at the same time, because most of their time is waiting."""

import concurrent.futures
import functools


def alongside(test):
    """Marks a test as one of those. The first that is run starts them all, each in a thread and with
    an instance of its own; each is waited for and judged under its own name. What one of them breaks
    is no other's."""

    @functools.wraps(test)
    def judged(self):
        _started(type(self))[test.__name__].result()

    judged.body = test
    return judged


def wait_for_all(cls):
    """Until all marked tests of the class have ended, well or not."""
    concurrent.futures.wait(_started(cls).values())


def _started(cls) -> dict[str, concurrent.futures.Future]:
    if "_alongside" not in vars(cls):
        bodies = {name: one.body for name, one in vars(cls).items() if hasattr(one, "body")}
        pool = concurrent.futures.ThreadPoolExecutor(len(bodies))
        cls.addClassCleanup(pool.shutdown)
        cls._alongside = {name: pool.submit(body, cls(name)) for name, body in bodies.items()}
    return cls._alongside
