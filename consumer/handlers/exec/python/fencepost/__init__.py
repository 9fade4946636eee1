"""Handlers for fencepost's `handler.exec`, a function each.

    import fencepost

    @fencepost.handler
    def charge(record):
        return {"order": record.id, "cents": record.value["amount"] * 100}

    if __name__ == "__main__":
        fencepost.run(charge)

What the function returns becomes the record's value; None is a null value. It raises Retry or
Reject where there is none, Skip where the record writes no row; any other exception is a failure
that is retried.
"""

from ._calls import batch_handler, handler, heartbeat
from ._json import Number
from ._process import run, take_pipes_of_worker
from ._record import Record
from ._results import Reject, Result, Retry, Skip, text, values

__all__ = [
    "Number",
    "Record",
    "Reject",
    "Result",
    "Retry",
    "Skip",
    "batch_handler",
    "handler",
    "heartbeat",
    "run",
    "text",
    "values",
]

take_pipes_of_worker()
