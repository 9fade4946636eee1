"""A schema registry for tests: Confluent's REST API as far as serializers and fencepost speak it, and
strict: what the real one refuses is refused with its status and error code. In memory.

schema_registry.py [--user NAME:PASSWORD] [--proto NAME=FILE]...: prints "port N". A Protobuf schema
that is registered as a serialized descriptor is given as the text of its .proto file, as the real one
does. POST /test/away with a status makes it answer everything with that status; 0 ends it. GET
/test/questions: how often each path was asked for."""

import argparse
import base64
import hashlib
import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code = status, code


class Schemas:
    def __init__(self, protos):
        self.lock = threading.Lock()
        self.protos = protos
        self.by_id = {}  # id → what GET /schemas/ids/{id} answers
        self.subjects = {}  # subject → [id of version 1, …]

    def text_of(self, body):
        kind = body.get("schemaType", "AVRO")
        text = body.get("schema")
        if kind not in ("AVRO", "PROTOBUF", "JSON") or not isinstance(text, str):
            raise Refused(422, 42201, "Invalid schema")
        if kind != "PROTOBUF":
            try:
                json.loads(text)
            except ValueError as error:
                raise Refused(422, 42201, "Invalid schema") from error
            return kind, text
        if not text.lstrip().startswith("syntax"):
            digest = hashlib.sha256(base64.b64decode(text, validate=True)).hexdigest()
            name = re.search(rb"[a-z_/]+\.proto", base64.b64decode(text)).group().decode()
            if name not in self.protos:
                raise Refused(422, 42201, f"Invalid schema {digest}: no --proto {name}")
            text = self.protos[name]
        return kind, text

    def register(self, subject, body):
        kind, text = self.text_of(body)
        answer = {"schema": text}
        if kind != "AVRO":
            answer["schemaType"] = kind
        if body.get("references"):
            for reference in body["references"]:
                self.version(reference["subject"], str(reference["version"]))
            answer["references"] = body["references"]
        with self.lock:
            ids = self.subjects.setdefault(subject, [])
            number = next((i for i, known in self.by_id.items() if known == answer), None)
            if number is None:
                number = 100_000 + len(self.by_id)  # more than one byte of the four
                self.by_id[number] = answer
            if number not in ids:
                ids.append(number)
        return {"id": number}

    def by_number(self, text):
        known = self.by_id.get(int(text))
        if known is None:
            raise Refused(404, 40403, f"Schema {text} not found")
        return known

    def version(self, subject, text):
        if subject not in self.subjects:
            raise Refused(404, 40401, f"Subject '{subject}' not found.")
        ids = self.subjects[subject]
        number = len(ids) if text == "latest" else int(text)
        if not 1 <= number <= len(ids):
            raise Refused(404, 40402, f"Version {text} not found.")
        identity = ids[number - 1]
        return {"subject": subject, "version": number, "id": identity, **self.by_id[identity]}

    def lookup(self, subject, body):
        kind, text = self.text_of(body)
        for number, identity in enumerate(self.subjects.get(subject, []), 1):
            known = self.by_id[identity]
            if known["schema"] == text and known.get("schemaType", "AVRO") == kind:
                return {"subject": subject, "version": number, "id": identity, **known}
        raise Refused(404, 40403, "Schema not found")


def handler(schemas, user):
    state = {"away": 0}
    questions = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def serve(self, method):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = urllib.parse.urlsplit(self.path).path
            try:
                if (method, path) == ("POST", "/test/away"):
                    state["away"] = int(body)
                    return self.answer(200, {})
                if (method, path) == ("GET", "/test/questions"):
                    return self.answer(200, questions)
                if method == "GET":
                    questions[path] = questions.get(path, 0) + 1
                if state["away"]:
                    raise Refused(state["away"], state["away"] * 100 + 1, "away")
                if user is not None:
                    given = self.headers.get("Authorization", "")
                    if given != "Basic " + base64.b64encode(user.encode()).decode():
                        raise Refused(401, 401, "Unauthorized")
                return self.answer(200, self.route(method, path, body))
            except Refused as refused:
                self.answer(refused.status, {"error_code": refused.code, "message": str(refused)})

        def route(self, method, path, body):
            parts = [urllib.parse.unquote(part) for part in path.split("/")[1:]]
            if method == "GET" and re.fullmatch(r"/schemas/ids/\d+", path):
                return schemas.by_number(parts[2])
            if len(parts) == 4 and parts[0] == "subjects" and parts[2] == "versions":
                if method == "GET" and re.fullmatch(r"\d+|latest", parts[3]):
                    return schemas.version(parts[1], parts[3])
            if method == "POST" and parts[0] == "subjects":
                if len(parts) == 3 and parts[2] == "versions":
                    return schemas.register(parts[1], json.loads(body))
                if len(parts) == 2:
                    return schemas.lookup(parts[1], json.loads(body))
            raise Refused(404, 404, "HTTP 404 Not Found")

        def do_GET(self):
            self.serve("GET")

        def do_POST(self):
            self.serve("POST")

        def log_message(self, *_):
            pass

    return Handler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--user")
    parser.add_argument("--proto", action="append", default=[])
    arguments = parser.parse_args()
    protos = {}
    for proto in arguments.proto:
        name, file = proto.split("=", 1)
        with open(file, encoding="utf-8") as text:
            protos[name] = text.read()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(Schemas(protos), arguments.user))
    server.daemon_threads = True
    print(f"port {server.server_address[1]}", flush=True)
    server.serve_forever()


main()
