#!/usr/bin/env python3
"""A test for payments.yaml: a payment service in this process, and real records through `fencepost dev`.

Beside payments.yaml: `python3 test_payments.py`, or `pytest`."""
import base64
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIPELINE = pathlib.Path(__file__).with_name("payments.yaml")
FENCEPOST = os.environ.get("FENCEPOST", "fencepost")


class Payments:
    """Charges each id once, and refuses a token below the highest that it has seen for the id."""

    def __init__(self):
        self.lock = threading.Lock()
        self.charges = {}  # by id
        self.tokens = {}  # the highest, by id
        self.stale = 0

    def charge(self, merchant, payment):
        with self.lock:
            if payment["token"] < self.tokens.get(payment["id"], 0):
                self.stale += 1
                return {"error": {"retry": False, "message": "an older token", "class": "stale"}}
            self.tokens[payment["id"]] = payment["token"]
            if payment["value"]["card"] == "expired":
                return {"error": {"retry": False, "message": "card declined", "class": "declined"}}
            charge = self.charges.setdefault(
                payment["id"], {"charge_id": f"ch-{payment['id']}", "merchant": merchant, **payment["value"]})
            return {"value": {"charge_id": charge["charge_id"]}}


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    payments = Payments()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/oauth/token":
            good = "Basic " + base64.b64encode(b"payments:s3cret").decode()
            if self.headers["Authorization"] != good:
                return self.answer(401, {"error": "invalid_client"})
            return self.answer(200, {"access_token": "t-1", "token_type": "Bearer", "expires_in": 60})
        if self.headers["Authorization"] != "Bearer t-1":
            return self.answer(401, {"error": "invalid_token"})
        _, merchants, merchant, charges = self.path.split("/")
        assert (merchants, charges) == ("merchants", "charges")
        return self.answer(
            200, [{"id": p["id"], **self.payments.charge(merchant, p)} for p in json.loads(body)])

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class PaymentsTest(unittest.TestCase):
    def test_each_payment_is_charged_once_and_keeps_what_it_is(self):
        payments = [{"payment_id": f"p-{i}", "merchant": f"m-{i % 2}", "cents": 100 + i,
                     "card": "expired" if i == 7 else "visa"} for i in range(50)]
        server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory() as folder:
            records = pathlib.Path(folder, "payments.jsonl")
            records.write_text("".join(
                json.dumps({"key": p["merchant"], "value": p}) + "\n" for p in payments + payments[:9]))
            run = subprocess.run(
                [FENCEPOST, "dev", PIPELINE, "--produce", records], capture_output=True, text=True,
                env={**os.environ, "PSP_URL": f"http://127.0.0.1:{server.server_port}",
                     "PSP_SECRET": "s3cret"}, timeout=120)
        server.shutdown()
        server.server_close()
        self.assertIn("59 records: 49 took effect, 8 were done before", run.stdout, run.stderr)
        self.assertEqual(len(Service.payments.charges), 49)
        self.assertEqual(Service.payments.charges["p-3"],
                         {"charge_id": "ch-p-3", "merchant": "m-1", "cents": 103, "card": "visa"})
        self.assertEqual(Service.payments.stale, 0)
        self.assertIn('"cents": 103, "charge_id": "ch-p-3"', run.stdout)


if __name__ == "__main__":
    unittest.main()
