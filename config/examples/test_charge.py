"""Run it by pytest; the fixtures come with the module fencepost."""

import charge
import fencepost
import pytest


class Bank:
    """In the service's place. Like it, it charges an id once, and refuses a stale token."""

    def __init__(self, effects):
        self.effects = effects
        self.answers = {}
        self.highest = {}

    def post(self, record, body):
        highest = self.highest[record.id] = max(record.token, self.highest.get(record.id, 0))
        if record.id not in self.answers:
            if record.token < highest:
                raise fencepost.Retry("a stale token", class_="409")
            self.effects.note(record.id, record.token)
            self.answers[record.id] = {"charge_id": f"ch-{record.id}", "status": "paid"}
        return self.answers[record.id]


@pytest.fixture
def bank(fencepost_effects, monkeypatch):
    bank = Bank(fencepost_effects)
    monkeypatch.setattr(charge, "post", bank.post)
    return bank


def payment(id, **value):
    return {"id": id, "value": {"payment_id": id, **value}}


def test_a_payment_keeps_what_it_has(bank, fencepost_handler):
    charged = fencepost_handler(charge.charge).call({"cents": 5, "by": "ada"}, id="p-1").value
    assert charged == {"cents": 5, "by": "ada", "charge_id": "ch-p-1", "status": "paid"}


def test_payments_are_charged_once_on_a_bad_day(bank, fencepost_handler, fencepost_effects):
    payments = [payment(f"p-{n}", cents=n) for n in range(1, 8)]
    answers = fencepost_handler(charge.charge, batch=3).bad_day(payments)
    assert [answer.value["status"] for answer in answers.values()] == ["paid"] * 7
    fencepost_effects.assert_once(answers)
    fencepost_effects.assert_tokens_never_fall()


def test_a_service_that_fails_is_asked_again(bank, fencepost_handler, monkeypatch):
    def busy_once(record, body):
        if record.attempt == 1:
            raise fencepost.Retry("busy", class_="503")
        return bank.post(record, body)

    monkeypatch.setattr(charge, "post", busy_once)
    answers = fencepost_handler(charge.charge).bad_day([payment("p-1", cents=5)])
    assert answers["p-1"].value["status"] == "paid"


def test_what_is_no_payment_is_rejected(fencepost_handler):
    call = fencepost_handler(charge.charge).call
    for value in ({"payment_id": "p-1"}, {"cents": "5"}, {"cents": True}):
        assert (call(value).error_class, call(value).retry) == ("no_amount", False)
    for value in (None, [], "text"):
        assert (call(value).error_class, call(value).retry) == ("no_payment", False)


def test_a_cancelled_payment_is_skipped(fencepost_handler):
    assert fencepost_handler(charge.charge).call({"status": "cancelled"}).values == []


def test_the_program_runs_and_ends(fencepost_process):
    program = fencepost_process(charge.__file__)
    assert program.call({"cents": 0}).value["status"] == "free"
    assert program.terminate() == 0
