"""Fixtures for tests of handlers.

    def test_a_payment_is_charged_once(fencepost_handler, fencepost_effects, monkeypatch):
        monkeypatch.setattr(charge, "post", FakeBank(fencepost_effects).post)
        answers = fencepost_handler(charge.charge).bad_day([{"id": "p-1", "value": {"cents": 5}}])
        assert answers["p-1"].value["status"] == "paid"
        fencepost_effects.assert_once(["p-1"])
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from .testing import Effects, InProcess, Process


@pytest.fixture
def fencepost_handler() -> Iterator[Callable[..., InProcess]]:
    """fencepost_handler(function, batch=None): a testing.InProcess."""
    with contextlib.ExitStack() as stack:

        def make(*args: Any, **options: Any) -> InProcess:
            return stack.enter_context(contextlib.closing(InProcess(*args, **options)))

        yield make


@pytest.fixture
def fencepost_process(request: pytest.FixtureRequest) -> Iterator[Callable[..., Process]]:
    """fencepost_process(program, batch=None, env=None, timeout=30): a testing.Process. A program
    that is a file is relative to the test's folder.
    """
    with contextlib.ExitStack() as stack:

        def make(program: Any, *args: Any, **options: Any) -> Process:
            if isinstance(program, (str, Path)):
                program = request.path.parent / program
            return stack.enter_context(contextlib.closing(Process(program, *args, **options)))

        yield make


@pytest.fixture
def fencepost_effects() -> Effects:
    """A testing.Effects, for a fake service."""
    return Effects()
