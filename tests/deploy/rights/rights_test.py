"""The files with the least rights (deploy/kafka/make-acls, deploy/*/grants.sql) are enough for real
workers, and each right in them is needed.

For each right there is a pipeline whose user has all rights of its file but that one, and for each
kind of pipeline one whose user has them all: in one worker, each with topics, group and user of its
own. At the end who lacks a right gets it, and works: it was that right alone.
"""

import dataclasses
import json
import pathlib
import re
import shlex
import sqlite3
import subprocess
import unittest

from support.databases import mariadb, postgres
from support.fleet import LockStore, Worker, folder, shared
from support.kafka import VERSION, Kafka
from support.processes import SOURCE, free_port, run, wait_until

LISTENERS = """\
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},S://127.0.0.1:{sasl}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},S://127.0.0.1:{sasl}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,S:SASL_PLAINTEXT
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN
listener.name.s.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required {users};
"""

PIPELINE = """version: 1
name: {name}
guarantee: exactly-once
kafka:
  brokers: [{kafka}]
  topics: ["{topics}"]
  start_from: earliest
  commit_interval: 200ms
  {login}
record_id: {record_id}
lock: {{redis: {{nodes: [{nodes}]}}}}
processing: {{order: partition}}
dead_letter: {{topic: {name}.dead}}
output: {output}
"""

# Kind of pipeline: right that is taken away: what /ready or the log of the worker says then.
ACLS = {
    "ledger": {
        "Read --topic NAME": "NAME: Broker: Topic authorization failed",
        "Read --group NAME": "Group authorization failed.; grant READ .* on group 'NAME'",
        "Write --topic NAME.dead": "dead letters: .*'NAME.dead'.*; grant WRITE on the topic",
    },
    "output": {
        "Read --topic NAME": "NAME: Broker: Topic authorization failed",
        "Read --group NAME": "Group authorization failed.; grant READ .* on group 'NAME'",
        "Write --topic NAME.dead": "output: .*'NAME.dead'.*; grant WRITE on the topic",
        "Write --topic NAME.out": "output: .*'NAME.out'.*; grant WRITE on the topic",
        "Write --transactional-id NAME. --resource-pattern-type prefixed":
            r"output: .*; grant WRITE on transactional.id .*'NAME\.'",
    },
    "pattern": {
        "Read --topic NAME --resource-pattern-type prefixed": "or this user may not see it",
    },
}  # fmt: skip
IDS, POSITIONS = "fencepost_ledger", "fencepost_positions"
POSTGRES = {
    "insert": {
        f"SELECT ON {IDS}": f"no right to read, .*; GRANT SELECT, INSERT, DELETE ON public.{IDS}",
        f"INSERT ON {IDS}": f"no right to read, .*; GRANT SELECT, INSERT, DELETE ON public.{IDS}",
        f"DELETE ON {IDS}": f"no right to read, .*; GRANT SELECT, INSERT, DELETE ON public.{IDS}",
        "INSERT ON effects": "no right to insert .*; GRANT INSERT ON public.effects",
        'CONNECT ON DATABASE :"DBNAME"': "does not have CONNECT privilege",
        "USAGE ON SCHEMA public": "there is no table effects; .*; there is public.effects",
    },
    "position": {
        f"SELECT ON {POSITIONS}": f"; GRANT SELECT, INSERT, UPDATE ON public.{POSITIONS}",
        f"INSERT ON {POSITIONS}": f"; GRANT SELECT, INSERT, UPDATE ON public.{POSITIONS}",
        f"UPDATE ON {POSITIONS}": f"; GRANT SELECT, INSERT, UPDATE ON public.{POSITIONS}",
    },
    "update": {
        "SELECT ON effects": "no right to SELECT .*; GRANT SELECT ON public.effects",
        "UPDATE ON effects": "no right to UPDATE .*; GRANT UPDATE ON public.effects",
    },
    "delete": {
        "SELECT ON effects": "no right to SELECT .*; GRANT SELECT ON public.effects",
        "DELETE ON effects": "no right to DELETE .*; GRANT DELETE ON public.effects",
    },
    "statement": {'TEMPORARY ON DATABASE :"DBNAME"': "; .*GRANT TEMPORARY ON DATABASE"},
}
MYSQL = {
    "insert": {
        f"SELECT ON {IDS}": "SELECT command denied to user .*; grant",
        f"INSERT ON {IDS}": "lacks a right on a table .error 1142.*grants.sql",
        f"DELETE ON {IDS}": "lacks a right on a table .error 1142.*grants.sql",
        "INSERT ON effects": "there is no table effects; .* may this account not see it",
    },
    "position": {
        f"SELECT ON {POSITIONS}": "SELECT command denied to user .*; grant",
        f"INSERT ON {POSITIONS}": "lacks a right on a table .error 1142.*grants.sql",
        f"UPDATE ON {POSITIONS}": "lacks a right on a table .error 1142.*grants.sql",
    },
    "ignore": {
        "SELECT ON effects": "lacks a right on a column .error 1143.*grants.sql",
        "UPDATE ON effects": "lacks a right on a table .error 1142.*grants.sql",
    },
    "delete": {
        "SELECT ON effects": "lacks a right on a column .error 1143.*grants.sql",
        "DELETE ON effects": "lacks a right on a table .error 1142.*grants.sql",
    },
}
MYSQL["update"] = MYSQL["ignore"]
RECORD_IDS = {"insert": "key", "position": "position", "delete": "key"}


@dataclasses.dataclass
class Case:
    server: str
    kind: str
    number: int  # 0: it lacks no right
    rights: list[str]
    lacks: str = ""
    seen: str = ""  # then, as a pattern
    file: pathlib.Path | None = None

    @property
    def name(self) -> str:
        return f"{self.server}-{self.kind}-{self.number}"


def cases_of(server, kind, rights: list[str], taken: dict[str, str]) -> list[Case]:
    """One with all rights, and one without each of those that are taken away."""
    return [Case(server, kind, 0, rights)] + [
        Case(server, kind, i, [right for right in rights if right != lacks], lacks, seen)
        for i, (lacks, seen) in enumerate(taken.items(), 1)
    ]


def grants(database) -> dict[str, list[str]]:
    """The rights of a grants.sql as PRIVILEGE ON OBJECT, by the comment above them."""
    found, title = {}, ""
    for line in (SOURCE / "deploy" / database / "grants.sql").read_text().splitlines():
        if grant := re.fullmatch(r"(?:--   )?GRANT (.*) ON (.*) TO app;", line):
            rights = [f"{one} ON {grant[2]}" for one in grant[1].split(", ")]
            found.setdefault(title, []).extend(rights)
        else:
            title = line.removeprefix("-- ")
    return found


def rows(case) -> str:
    """The keys of the output that say what is written."""
    if case.kind == "statement":
        return ("statement: 'INSERT INTO effects VALUES ($1, $2::bigint)',"
                " args: [json:/order_id, json:/amount]")  # fmt: skip
    more = {"insert": ", on_null_value: skip", "update": ", on_conflict: update, key: [order_id]",
            "ignore": ", on_conflict: ignore",
            "delete": ", on_null_value: delete, key: [order_id]"}  # fmt: skip
    order = "key" if case.kind == "delete" else "json:/order_id"
    return (f"table: effects, columns: {{order_id: {order}, amount: json:/amount}}"
            + more.get(case.kind, ""))  # fmt: skip


class Administrator:
    """KafkaTool.java, for as long as the tests run."""

    def __init__(self, test, kafka):
        libs = run(SOURCE / "tests/support/fetch-kafka", VERSION, "kafka-tools", limit=600).stdout
        self._process = subprocess.Popen(
            ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{libs.strip()}/*",
             pathlib.Path(__file__).with_name("KafkaTool.java"), kafka.bootstrap],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        for clean in (self._process.communicate, self._process.kill):
            test.addCleanup(clean)

    def ask(self, *words) -> str:
        print(*words, file=self._process.stdin, flush=True)
        if not (answer := self._process.stdout.readline().strip()):
            raise AssertionError(f"refused: {words}")
        return answer

    def at(self, group, topic) -> tuple[int, int]:
        """The group's offset in a topic's only partition, -1 for none, and the topic's end."""
        return tuple(map(int, self.ask("at", group, topic).split()))


class Rights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        test = shared(cls)
        acls = {kind: cls.acls(*options) for kind, options in {
            "ledger": ("--topic", "NAME", "--dead-letter", "NAME.dead"),
            "output": ("--topic", "NAME", "--dead-letter", "NAME.dead", "--output", "NAME.out",
                       "--transactions", "NAME"),
            "pattern": ("--topic", "NAME*", "--dead-letter", "NAME.dead"),
        }.items()}  # fmt: skip
        cls.acl_cases = [case for kind, taken in ACLS.items()
                         for case in cases_of("kafka", kind, acls[kind], taken)]  # fmt: skip
        cls.sasl = f"127.0.0.1:{free_port()}"
        cls.kafka = Kafka(test, LISTENERS.format(
            sasl=cls.sasl.rpartition(":")[2],
            users=" ".join(f'user_{case.name}="secret"' for case in cls.acl_cases)))  # fmt: skip
        cls.administrator = Administrator(test, cls.kafka)
        cls.locks = LockStore(test, 1, "30s")

    @staticmethod
    def acls(*options) -> list[str]:
        made = run(SOURCE / "deploy/kafka/make-acls", "--principal", "User:app", "--group", "NAME",
                   *options)  # fmt: skip
        lines = [" ".join(shlex.split(line)) for line in made.stdout.splitlines()]
        start = "--add --allow-principal User:app --operation "
        return [line.removeprefix(start) for line in lines]

    def allow(self, case, right):
        self.administrator.ask("acls --add --allow-principal", f"User:{case.name}", "--operation",
                               right.replace("NAME", case.name))  # fmt: skip

    def write(self, case, home, output, record_id="json:/order_id", topics="NAME", login=False):
        """Its file, and its topics."""
        for topic in (case.name, f"{case.name}.dead"):
            self.kafka.create_topic(topic, 1)
        case.file = home / f"{case.name}.yaml"
        case.file.write_text(PIPELINE.format(
            name=case.name, kafka=self.sasl if login else self.kafka.bootstrap, record_id=record_id,
            topics=topics.replace("NAME", case.name), nodes=self.locks.list, output=output,
            login=f"sasl: {{mechanism: PLAIN, username: {case.name}, password: secret}}"
            if login else ""))  # fmt: skip

    def send(self, case, order, amount: int | None):
        """Without an amount it is a bad record."""
        value = json.dumps({"order_id": order, "amount": "none" if amount is None else amount})
        if case.kind == "output" and amount is None:
            value = "no order"
        if case.kind == "delete" and amount is not None:
            value = None
        if case.kind == "insert" and amount == 2:
            self.kafka.send(case.name, 0, None, key=order)  # its row in the ledger gives way
        self.kafka.send(case.name, 0, value, key=order)

    def committed(self, case) -> bool:
        """To the end."""
        offset, end = self.administrator.at(case.name, case.name)
        return offset == end

    def judge(self, cases, effects, grant):
        """`effects(case)`: the orders that have their effect; `grant(case, right)`."""

        def orders(case, *which) -> set[str]:
            return {f"{case.name}-{one}" for one in which}

        for case in cases:
            for order, amount in ((1, 1), (2, None), (2, 2)):
                self.send(case, f"{case.name}-{order}", amount)
        self.kafka.flush()
        worker = Worker(self, cases, "worker-1")

        def said(case) -> str:
            (shown,) = [one for one in json.loads(worker.get("/status")[1])["pipelines"]
                        if one["pipeline"] == case.name]  # fmt: skip
            return "\n".join([shown["reason"], *(one["text"] for one in shown["last_errors"])])

        def waits(condition, case, what):
            try:
                wait_until(lambda: condition(case), 60, f"{case.name}: {what}")
            except AssertionError as late:
                raise AssertionError(f"{late}; lacks: {case.lacks}\n{said(case)}") from late

        def works(case, *which):
            waits(lambda case: orders(case, *which) <= effects(case), case, "the effects")
            waits(self.committed, case, "the group's offset")
            letters = self.administrator.at(case.name, f"{case.name}.dead")[1]
            self.assertGreaterEqual(letters, 1, case.name)

        lacking = [case for case in cases if case.lacks]
        for case in cases:
            if not case.lacks:
                works(case, 1, 2)
        for case in lacking:
            waits(lambda case: re.search(case.seen.replace("NAME", case.name), said(case)), case,
                  case.seen)  # fmt: skip
            self.assertFalse(orders(case, 1, 2) <= effects(case), case)
            grant(case, case.lacks)
            self.send(case, f"{case.name}-3", 3)
        self.kafka.flush()
        for case in lacking:
            works(case, 1, 2, 3)

    def every_right_is_taken_away(self, cases, rights):
        taken = {case.lacks for case in cases if case.lacks}
        self.assertEqual(taken, set(rights))

    def test_make_acls_prints_what_kafka_acls_takes_and_refuses_the_rest(self):
        script = SOURCE / "deploy/kafka/make-acls"
        made = run(script, "--principal", "User:CN=a b, O=c", "--topic", "returns-*",
                   "--group", "g")  # fmt: skip
        words = run("xargs", "-L1", "printf", "<%s>", input=made.stdout).stdout
        add = "<--add><--allow-principal><User:CN=a b, O=c><--operation><Read>"
        self.assertEqual(words, f"{add}<--topic><returns-><--resource-pattern-type><prefixed>"
                                f"{add}<--group><g>")  # fmt: skip
        for wrong in ("--principal", "--topic --group", "--principal User:a", "--topic orders",
                      "--principal User:a --topics orders",
                      "--principal User:a --topic o'c"):  # fmt: skip
            refused = run(script, *wrong.split(), check=False)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), wrong)
            self.assertRegex(refused.stderr, r"\Amake-acls: .*\n\Z")

    def test_in_kafka_are_enough_and_each_is_needed(self):
        self.every_right_is_taken_away(
            self.acl_cases, [right for case in self.acl_cases for right in case.rights])
        home = folder(self)
        database = home / "effects.db"
        with sqlite3.connect(database) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE effects (order_id text, amount integer)")
        columns = "{order_id: json:/order_id, amount: json:/amount}"
        for case in self.acl_cases:
            output = f"{{sqlite: {{path: {database}, table: effects, columns: {columns}}}}}"
            if case.kind == "output":
                self.kafka.create_topic(f"{case.name}.out", 1)
                output = f"{{kafka: {{topic: {case.name}.out, key: key, value: value}}}}"
            self.write(case, home, output, login=True,
                       topics="^NAME$" if case.kind == "pattern" else "NAME")  # fmt: skip
            for right in case.rights:
                self.allow(case, right)

        def effects(case):
            if case.kind != "output":
                with sqlite3.connect(database) as db:
                    return {name for (name,) in db.execute("SELECT order_id FROM effects")}
            _, end = self.administrator.at(case.name, f"{case.name}.out")  # of records and marks
            return {f"{case.name}-{order}" for order in range(end)}

        self.judge(self.acl_cases, effects, self.allow)

    def judge_grants(self, database, wanted, output, sql, user, login=""):
        """`sql(text)` asks as the owner of the tables; `user` is how it writes the name of one."""
        given, home = grants(database), folder(self)
        cases = []
        for kind, taken in wanted.items():
            rights = [right for title, group in given.items() for right in group
                      if not title or "PUBLIC" in title or kind in title]  # fmt: skip
            self.assertLessEqual(set(taken), set(rights))
            cases += cases_of(database, kind, rights, taken)
        self.every_right_is_taken_away(cases, sum(given.values(), []))
        whole = (SOURCE / "deploy" / database / "grants.sql").read_text()
        sql(f"CREATE USER {user.format('app')};" + re.sub("(?m)^--   (?=GRANT)", "", whole))

        def granted(case, right) -> str:
            return f"GRANT {right} TO {user.format(case.name)};"

        made = []  # in one call of the client, since there are hundreds
        for case in cases:
            self.write(case, home, output.format(user=case.name, rows=rows(case)),
                       RECORD_IDS.get(case.kind, "json:/order_id"))  # fmt: skip
            made.append(f"CREATE USER {user.format(case.name)}{login};")
            made += [granted(case, right) for right in case.rights]
            if case.kind == "delete":
                made += [f"INSERT INTO effects VALUES ('{case.name}-{i}', 0);" for i in (1, 2, 3)]
        sql("\n".join(made))

        def effects(case):
            there = set(sql("SELECT order_id FROM effects;").split())
            if case.kind != "delete":
                return there
            return {f"{case.name}-{order}" for order in (1, 2, 3)} - there

        self.judge(cases, effects, lambda case, right: sql(granted(case, right)))

    def place(self) -> pathlib.Path:
        """A folder for a server of another user."""
        home = folder(self)
        home.chmod(0o711)
        (home / "server").mkdir()
        return home / "server"

    def test_in_postgres_are_enough_and_each_is_needed(self):
        place = self.place()
        port, _ = postgres(self, place, [])

        def sql(text, check=True):
            return run("psql", "-XAtqv", "ON_ERROR_STOP=1", "-h", place, "-p", port, "-U",
                       "postgres", input=text, check=check).stdout  # fmt: skip

        wait_until(lambda: sql("SELECT 1;", check=False), 60, "PostgreSQL")
        sql("REVOKE ALL ON SCHEMA public FROM PUBLIC; REVOKE ALL ON DATABASE postgres FROM PUBLIC;"
            "CREATE TABLE effects (order_id text PRIMARY KEY, amount bigint);"
            + (SOURCE / "deploy/postgres/ledger.sql").read_text())  # fmt: skip
        output = (f'{{{{postgres: {{{{dsn: "host={place} port={port} user={{user}}'
                  ' dbname=postgres", {rows}}}}}')  # fmt: skip
        self.judge_grants("postgres", POSTGRES, output, sql, '"{}"', " LOGIN")

    def test_in_mariadb_are_enough_and_each_is_needed(self):
        port = mariadb(self, self.place())

        def sql(text, check=True, database="shop"):
            return run("mariadb", "--no-defaults", "-N", "-h", "127.0.0.1", "-P", port, "-u",
                       "admin", database, input=text, check=check).stdout  # fmt: skip

        wait_until(lambda: sql("SELECT 1;", check=False, database="mysql"), 60, "MariaDB")
        sql("CREATE DATABASE shop;", database="mysql")
        sql("CREATE TABLE effects (order_id varchar(99) COLLATE utf8mb4_bin PRIMARY KEY,"
            " amount bigint);" + (SOURCE / "deploy/mysql/ledger.sql").read_text())  # fmt: skip
        output = (f"{{{{mysql: {{{{host: 127.0.0.1, port: {port}, user: {{user}}, database: shop,"
                  " {rows}}}}}")  # fmt: skip
        self.judge_grants("mysql", MYSQL, output, sql, "'{}'")


if __name__ == "__main__":
    unittest.main()
