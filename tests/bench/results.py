"""What ./dev bench prints: JSON lines, as tables.

results.py run WORD...            prints the line that says where and how `./dev bench WORD...` ran
results.py show                   passes lines from stdin to stdout, each with its table on stderr
results.py report TO FILE...      writes TO (RESULTS.md) from files of lines, the oldest first
results.py sizes DOCUMENT FILE... writes the table of sizes between its two marks in DOCUMENT

A line is {"bench", "of", "words", "rounds", "load", "sides": [{"name", "figures", "ratios"}]}. Of two
lines that measure the same, the later one counts; of a curve, those of the last file that has it.
"""

import datetime
import json
import math
import os
import re
import subprocess
import sys

INTRODUCTION = """# Results
Written by `./dev bench report`. [What each measures](README.md). Figures are medians of the rounds, `of …`
medians of the ratios round by round.
"""

# words, bench, what the measurement is of, how its side begins, what it is compared with, figure, bound.
# Of several sides the best one counts.
AIMS = [
    ("Kafka → PostgreSQL, a lock a record, of the floor", "pipeline", {}, "by position, 1 worker", "floor",
     "records_per_s", ">=", 0.75),
    ("in blocks", "pipeline", {}, "by block, 1 worker", "floor", "records_per_s", ">=", 1.0),
    ("by id", "pipeline", {}, "by id, 1 worker", "floor", "records_per_s", ">=", 0.75),
    ("the worker's processor time a record in blocks, µs", "pipeline", {}, "by block, 1 worker", "",
     "client_us", "<=", 3),
    ("by id", "pipeline", {}, "by id, 1 worker", "", "client_us", "<=", 5),
    ("Kafka → Kafka, of the floor", "kafka", {}, "by ", "floor", "records_per_s", ">=", 0.9),
    ("of Kafka Streams", "kafka", {}, "by ", "streams", "records_per_s", ">=", 1.0),
    ("http handler, of the floor", "handler", {}, "to PostgreSQL, one", "floor", "records_per_s", ">=", 0.7),
    ("batches of 50, of single calls", "handler", {}, "to PostgreSQL, batches",
     "to PostgreSQL, one by one", "records_per_s", ">=", 5),
    ("Python, records/s", "handler", {}, "to PostgreSQL, Python", "", "records_per_s", ">=", 60000),
    ("lock cycles at 256 in flight, of rslock", "peers", {"in_flight": 256}, "ours", "rslock",
     "cycles_per_s", ">=", 5),
    ("at 1 in flight, of the floor", "locks", {"in_flight": 1, "then": "release"}, "ours", "floor",
     "cycles_per_s", ">=", 0.9),
    ("latency in blocks at a tenth of the peak, p50, of the floor", "latency", {"by": "block"}, "", "floor",
     "p50_ms", "<=", 1.5),
    ("p99", "latency", {"by": "block"}, "", "floor", "p99_ms", "<=", 1.5),
    ("by id, p50", "latency", {"by": "id"}, "", "floor", "p50_ms", "<=", 1.5),
    ("p99", "latency", {"by": "id"}, "", "floor", "p99_ms", "<=", 1.5),
    ("bytes on a node a remembered name", "node-memory", {}, "contact", "", "bytes_per_name", "<=", 120),
    ("a worker's memory in blocks, MiB", "memory", {}, "by block", "", "peak_mib", "<=", 150),
    ("by id", "memory", {}, "by id", "", "peak_mib", "<=", 150),
    ("its idle processor time, % of a core", "memory", {}, "by ", "", "idle_cpu_percent", "<=", 1),
]


def number(value):
    digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def table(head, rows):
    lines = [f"| {' | '.join(cells)} |\n" for cells in [head, *rows]]
    return lines[0] + "|---" * len(head) + "|\n" + "".join(lines[1:])


def text(value):
    return value if isinstance(value, str) else json.dumps(value)


def unique(names):
    return list(dict.fromkeys(names))


def section(lines):
    """The measurements of one bench: a row a side. What is the same in all of them stands above."""
    of = unique(name for line in lines for name in line["of"])
    varied = [name for name in of if len({text(line["of"].get(name)) for line in lines}) > 1]
    sides = [side for line in lines for side in line["sides"]]
    figures = unique(name for side in sides for name in side["figures"])
    ratios = unique((reference, name) for side in sides for reference, of_it in side.get("ratios", {}).items()
                    for name in of_it)
    same = [f"{name} {text(lines[0]['of'][name])}" for name in of if name not in varied]
    loads = sorted(line["load"] for line in lines)
    same += [f"rounds {lines[0]['rounds']}", f"load {' to '.join(unique([str(loads[0]), str(loads[-1])]))}"]
    rows = []
    for line in lines:
        for side in line["sides"]:
            row = [text(line["of"].get(name, "")) for name in varied] + [side["name"]]
            row += [number(side["figures"][name]) if name in side["figures"] else "" for name in figures]
            for reference, name in ratios:
                ratio = side.get("ratios", {}).get(reference, {}).get(name)
                row.append("" if ratio is None else f"{ratio:.2f}")
            rows.append(row)
    one = len({name for _, name in ratios}) == 1
    head = varied + ["side"] + figures
    head += [f"of {reference}" if one else f"{name} of {reference}" for reference, name in ratios]
    return ". ".join(filter(None, [lines[0]["words"], ", ".join(same)])) + ".\n\n" + table(head, rows)


def dirty(lines):
    """A row a kind of bad records: the rate of a clean topic, and what each share of them leaves of it."""
    rows, shares = {}, []
    for line in lines:
        clean = next(side["figures"]["records_per_s"] for side in line["sides"] if side["name"] == "clean")
        for side in line["sides"]:
            if side["name"] != "clean":
                share, kind = re.match(r"(\S+ %) (.*)", side["name"]).groups()
                shares = unique([*shares, share])
                row = rows.setdefault((line["of"]["into"], line["of"]["by"], kind), {"clean": number(clean)})
                row[share] = f"{side['ratios']['clean']['records_per_s']:.2f}"
    loads = sorted(line["load"] for line in lines)
    load = " to ".join(unique([str(loads[0]), str(loads[-1])]))
    return (f"What dead letters leave of a clean topic's records/s. load {load}.\n\n" +
            table(["into", "by", "bad", "clean", *shares],
                  [[*key, *(row.get(share, "") for share in ["clean", *shares])] for key, row in rows.items()]))


def measured(aim, lines):
    _, bench, of, begins, reference, figure, bound, _ = aim
    values = []
    for line in lines:
        if line["bench"] != bench or "set" in line["of"] or not of.items() <= line["of"].items():
            continue
        for side in line["sides"]:
            figures = side.get("ratios", {}).get(reference, {}) if reference else side["figures"]
            if not side["name"].startswith(begins) or figure not in side["figures"]:
                continue
            of_all = {one["name"]: one["figures"][figure] for one in line["sides"] if figure in one["figures"]}
            if figure in figures:
                values.append(figures[figure])
            elif side["name"] != reference and of_all.get(reference):  # a reference has no ratios
                values.append(side["figures"][figure] / of_all[reference])
    return None if not values else max(values) if bound == ">=" else min(values)


def aims(lines):
    rows = []
    for aim in AIMS:
        value, least, bound = measured(aim, lines), aim[6] == ">=", aim[7]
        reached = value is not None and (value >= bound if least else value <= bound)
        rows.append([aim[0], ("≥ " if least else "≤ ") + number(bound),
                     "not measured" if value is None else number(value),
                     "" if value is None else "reached" if reached else "missed"])
    return table(["aim", "bound", "measured", ""], rows)


def growth(lines):
    """A row a curve: the rate at each point."""
    rows = {}
    for line in lines:
        of = line["of"]
        rate = next(iter(line["sides"][0]["figures"].values()))
        name = (of["curve"], "by " + of["by"] + (", " + of["set"] if "set" in of else ""))
        rows.setdefault(name, []).append(f"{text(of['x'])}: {number(rate)}")
    return table(["curve", "", "records/s at each point"],
                 [[curve, by, ", ".join(points)] for (curve, by), points in rows.items()])


def machines(lines):
    runs = {}
    for line in lines:
        machine = line["machine"]
        where = (f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, Linux "
                 f"{machine['kernel']}, librdkafka {line['librdkafka']}, Redis {line['redis']}")
        runs.setdefault(where, {}).setdefault(line["version"], []).append(line)
    text = ""
    for where, versions in runs.items():
        text += f"\n{where}:\n\n"
        for version, its in versions.items():
            commands = ", ".join(f"`{line['command'].removeprefix('./dev bench ')}`" for line in its)
            times = unique([min(line["at"] for line in its), max(line["at"] for line in its)])
            text += f"- {commands}: {' to '.join(times)}, {version}\n"
    return text.lstrip("\n")


def read(paths):
    lines = []
    for path in paths:
        curves = set()
        for at, row in enumerate(open(path, encoding="utf-8"), 1):
            try:
                line = json.loads(row)
                same = json.dumps([line["bench"], line["of"] if line["bench"] != "run" else line["command"]])
                curve = line["of"]["curve"] if line["bench"] == "growth" else None
            except (ValueError, KeyError, TypeError):
                sys.exit(f"{path}:{at}: not a line of ./dev bench")
            if curve and curve not in curves:
                curves.add(curve)
                lines = [(key, old) for key, old in lines if old.get("of", {}).get("curve") != curve]
            lines = [(key, old) for key, old in lines if key != same] + [(same, line)]
    return [line for _, line in lines]


def report(to, paths):
    lines = read(paths)
    benches = {}
    for line in lines:
        benches.setdefault(line["bench"], []).append(line)
    runs, curves = benches.pop("run", []), benches.pop("growth", [])
    parts = [INTRODUCTION, "## Aims\n" + aims(lines)]
    tables = {"dirty": dirty}
    parts += [f"## {bench}\n{tables.get(bench, section)(benches[bench])}" for bench in sorted(benches)]
    parts += ["## growth\n" + growth(curves)] * bool(curves)
    parts += ["## Commands of `./dev bench` and machines\n" + machines(runs)]
    with open(to, "w", encoding="utf-8") as file:
        file.write("\n".join(parts))


def sizes(document, paths):
    """What a fleet needs at a rate, from what a record cost in ./dev bench pipeline, at half load."""
    costs = {side["name"]: side["figures"] for line in read(paths)
             if line["bench"] == "pipeline" and "set" not in line["of"] for side in line["sides"]}
    load, nodes, asked, lease_bytes, lease_s = 0.5, 5, 3, 190, 20  # a lease: lock.ttl and 2 × max_skew
    rows = []
    for rate in (10_000, 100_000, 1_000_000, 10_000_000):
        for by in ("position", "block", "id"):
            cost = costs.get(f"by {by}, 1 worker")
            if not cost:
                continue
            cores = {name: rate * us / 1e6 / load for name, us in cost.items() if name.endswith("_us")}
            sets = max(1, math.ceil(cores["redis_us"] / nodes))
            leases = 0 if by == "block" else rate * lease_s * asked / nodes * lease_bytes / 2**20 / sets
            workers = max(2, math.ceil(rate / cost["records_per_s"] / load))
            rows.append([f"{rate:,}", by, str(workers), number(cores["client_us"]), str(sets),
                         number(cores["redis_us"] * load / nodes / sets * 100), number(leases),
                         number(cores["postgres_us"]), number(cores["kafka_us"])])
    head = ["records/s", "by", "workers", "their cores", "sets of 5 lock nodes",
            "load of a node, % of a core", "leases on a node, MiB", "database cores", "broker cores"]
    with open(document, encoding="utf-8") as file:
        old = file.read()
    new, found = re.subn(r"(?s)(<!-- sizes -->\n).*?(<!-- end of sizes -->)",
                         lambda marks: marks[1] + table(head, rows) + marks[2], old)
    if not found:
        sys.exit(f"{document}: the marks of the table of sizes are missing")
    with open(document, "w", encoding="utf-8") as file:
        file.write(new)


def first_line(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split("\n")[0]


def run(words):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = re.search(r"model name\s*: (.*)", file.read())
    line = {
        "bench": "run",
        "command": " ".join(["./dev bench", *words]),
        "at": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "version": first_line("build/release/fencepost", "version"),
        "machine": {"cpu": cpu[1] if cpu else "", "cores": os.cpu_count(), "kernel": os.uname().release,
                    "memory_gib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30},
        "librdkafka": first_line("pkg-config", "--modversion", "rdkafka"),
        "redis": re.search(r"v=(\S+)", first_line("redis-server", "--version"))[1],
    }
    print(json.dumps(line, ensure_ascii=False))


def show():
    for row in sys.stdin:
        print(row, end="", flush=True)
        line = json.loads(row)
        if line["bench"] != "run":
            print(f"{line['bench']}: {section([line])}", file=sys.stderr, flush=True)


def main():
    match sys.argv[1:]:
        case ["run", *words]:
            run(words)
        case ["show"]:
            show()
        case ["report", to, *paths] if paths:
            report(to, paths)
        case ["sizes", document, *paths] if paths:
            sizes(document, paths)
        case _:
            sys.exit(__doc__)


main()
