#!/usr/bin/env python3
"""A handler for `handler.exec`: one JSON object a line in, one a line out, in the same order.

In:   {"record_id", "token", "source", "topic", "partition", "offset", "timestamp", "attempt",
       "key", "value", "headers"}           value: the record's own JSON; null for a tombstone
Out:  {"value": ...}                       one row: this JSON
      {"values": [...]}                    several rows, or none
      {"error": TEXT, "class": WORD, "retry": true|false}
      each with the "record_id" that came in: a reply to another record is refused

What goes to standard error comes into the worker's log. The program ends when its input does.
"""
import hashlib
import json
import sys


def transform(record):
    view = record["value"]
    if not isinstance(view, dict):
        return {"error": "a view that is no JSON object", "class": "bad_view", "retry": False}
    if "bot" in view.get("agent", "").lower():
        return {"values": []}
    if "page" not in view:
        return {"error": "a view without a page", "class": "no_page", "retry": False}
    visitor = view.get("visitor")
    if visitor is not None:
        visitor = hashlib.sha256(visitor.encode()).hexdigest()[:12]
    return {"value": {"page": view["page"].split("?")[0], "visitor": visitor}}


def main():
    for line in sys.stdin:
        record = json.loads(line)
        try:
            answer = transform(record)
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            answer = {"error": str(problem), "class": "bad_view", "retry": False}
        print(json.dumps({"record_id": record["record_id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
