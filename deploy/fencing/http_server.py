#!/usr/bin/env python3
"""An example of a service that a frozen lock holder cannot harm.

PUT /NAME stores the body. Two headers are honoured, both mandatory:
  Fencing-Token: N      refused with 412 when below the highest seen for NAME
  Idempotency-Key: K    the same key again gets the answer of the first time, and changes nothing;
                        with another name or body: 422
GET /NAME answers the value. Every answer carries Fencing-Token-Highest where there is one.

Everything is decided in one SQLite transaction, so it holds over a crash and between threads.
Standard library only: python3 http_server.py [--port 8080] [--database fence.db]
"""

import argparse
import hashlib
import http.server
import json
import re
import sqlite3

LARGEST_BODY = 1 << 20
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS resource (name TEXT PRIMARY KEY, value BLOB, token INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS answered (
  key TEXT PRIMARY KEY, request TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
  at INTEGER NOT NULL DEFAULT (unixepoch()));
"""


def parse_token(text):
    """A positive integer below 2^63, or None."""
    if not re.fullmatch(r"[0-9]{1,19}", text or ""):
        return None
    token = int(text)
    return token if 0 < token < 1 << 63 else None


def put(db, name, token, key, value):
    """(status, body as a dict, highest token), decided in one transaction."""
    request = hashlib.sha256(name.encode() + b"\0" + value).hexdigest()
    db.execute("BEGIN IMMEDIATE")
    with db:
        row = db.execute("SELECT token FROM resource WHERE name = ?", (name,)).fetchone()
        highest = max(token, row[0] if row else 0)
        known = db.execute(
            "SELECT request, status, body FROM answered WHERE key = ?", (key,)
        ).fetchone()
        if known and known[0] != request:
            return 422, {"error": "this Idempotency-Key came with another request"}, highest
        if known:
            # It took effect before. A retry under a newer lease still raises the fence.
            db.execute("UPDATE resource SET token = ? WHERE name = ?", (highest, name))
            return known[1], json.loads(known[2]), highest
        if token < highest:
            # Not remembered under the key: the work was not done, the next holder will do it.
            return 412, {"error": "Fencing-Token is too low", "highest": str(highest)}, highest
        db.execute("INSERT OR REPLACE INTO resource VALUES (?, ?, ?)", (name, value, token))
        status, body = (200 if row else 201), {"stored": name, "token": str(token)}
        db.execute(
            "INSERT INTO answered (key, request, status, body) VALUES (?, ?, ?, ?)",
            (key, request, status, json.dumps(body)),
        )
        return status, body, highest


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    database = "fence.db"

    def do_PUT(self):  # noqa: N802, the base class wants this name
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            return self.answer(411, {"error": f"Content-Length up to {LARGEST_BODY} is needed"})
        value = self.rfile.read(int(length))
        if len(value) < int(length):  # the sender went away: it did not ask for half of it
            self.close_connection = True
            return None
        token = parse_token(self.headers.get("Fencing-Token"))
        key = self.headers.get("Idempotency-Key")
        if token is None or not key:
            return self.answer(400, {"error": "Fencing-Token and Idempotency-Key are needed"})
        with_db = self.open()
        try:
            status, body, highest = put(with_db, self.path, token, key, value)
        finally:
            with_db.close()
        return self.answer(status, body, highest)

    def do_GET(self):  # noqa: N802
        with_db = self.open()
        try:
            row = with_db.execute(
                "SELECT value, token FROM resource WHERE name = ?", (self.path,)
            ).fetchone()
        finally:
            with_db.close()
        if row is None:
            return self.answer(404, {"error": "nothing is stored here"})
        return self.answer(200, bytes(row[0]), row[1])

    def open(self):
        return sqlite3.connect(self.database, timeout=30, isolation_level=None)

    def answer(self, status, body, highest=None):
        payload = body if isinstance(body, bytes) else json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        if highest is not None:
            self.send_header("Fencing-Token-Highest", str(highest))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format, *args):  # noqa: A002
        pass


def main():
    parser = argparse.ArgumentParser(description="stores values behind a fence")
    parser.add_argument("--port", type=int, default=8080, help="0: any that is free")
    parser.add_argument("--database", default="fence.db")
    options = parser.parse_args()
    Handler.database = options.database
    with sqlite3.connect(options.database) as db:
        db.executescript(SCHEMA)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
