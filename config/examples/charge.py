"""Charges payments at a service. A handler for `handler.exec`: test_charge.py has its tests."""

import json
import os
import urllib.error
import urllib.request

import fencepost

URL = os.environ.get("PSP_URL", "http://127.0.0.1:8080/charges")


def post(record, body):
    """The service's answer. It charges an Idempotency-Key once, and remembers the answer."""
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": record.id,
        "Fencing-Token": str(record.token),
    }
    request = urllib.request.Request(URL, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=4) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        failure = fencepost.Reject if error.code in (402, 422) else fencepost.Retry
        raise failure(f"the service answered {error.code}", class_=str(error.code)) from error
    except urllib.error.URLError as error:
        raise fencepost.Retry(f"no answer: {error.reason}", class_="connection") from error


@fencepost.handler(heartbeat_for=90)  # a batch of 20 one after the other, up to 4 s each
def charge(record):
    payment = record.value
    if not isinstance(payment, dict):
        raise fencepost.Reject("no payment", class_="no_payment")
    if payment.get("status") == "cancelled":
        raise fencepost.Skip
    if type(payment.get("cents")) is not int:  # True is an int to isinstance
        raise fencepost.Reject("a payment without cents", class_="no_amount")
    if payment["cents"] == 0:
        return {**payment, "charge_id": None, "status": "free"}
    answer = post(record, {"cents": payment["cents"]})
    return {**payment, "charge_id": answer["charge_id"], "status": answer["status"]}


if __name__ == "__main__":
    fencepost.run(charge)
