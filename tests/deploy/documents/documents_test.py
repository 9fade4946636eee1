"""What the documents say is so: links lead somewhere, tests that are named exist, files and values
in them are accepted, commands are those of the program."""

import pathlib
import re
import unittest

import yaml
from support.charts import Rendered, Strict
from support.pipelines import check_lint
from support.processes import FENCEPOST, SOURCE, run
from support.rules import ALERTS, rules

OPERATIONS = SOURCE / "deploy" / "OPERATIONS.md"
PAGES = {path.stem: path.read_text() for path in (SOURCE / "deploy/operations").glob("*.md")}
TEXT = "\n".join([OPERATIONS.read_text(), *PAGES.values()])
VERSION = re.search(r"project\(fencepost VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def documents() -> list[pathlib.Path]:
    if not (SOURCE / ".git").exists():
        found = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.md"))
        return [SOURCE / name for name in sorted(found) if name.parts[0] != "build"]
    names = run("git", "-c", "safe.directory=*", "-C", SOURCE, "ls-files", "-co",
                "--exclude-standard", "*.md").stdout  # fmt: skip
    return [SOURCE / name for name in names.splitlines() if (SOURCE / name).exists()]


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^```.*?^```", "", text))


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", text)):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-"))
    return found


def blocks(kind: str) -> list[str]:
    return re.findall(rf"(?ms)^```{kind}\n(.*?)^```", TEXT)


def file(name: str) -> str:
    """The block that begins with `# NAME`."""
    (text,) = [block for block in blocks("yaml") if block.startswith(f"# {name}\n")]
    return text


def dead_links(path: pathlib.Path, text: str) -> list[str]:
    dead = []
    for target in LINK.findall(without_code(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        if not other.exists():
            dead.append(f"{path.relative_to(SOURCE)}: no {target}")
        elif anchor and anchor not in anchors(text if other == path else other.read_text()):
            dead.append(f"{path.relative_to(SOURCE)}: no heading {target}")
    return dead


def tests_in(folder: pathlib.Path) -> set[str]:
    text = "\n".join(p.read_text() for p in folder.iterdir() if p.suffix in (".cc", ".py"))
    names = re.findall(r"(?m)^(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)", text)
    return {*names, *re.findall(r"(?m)^    def (test_\w+)", text)}


def faults() -> list[str]:
    """The rows of the fault tables."""
    rows = [line for line in PAGES["faults"].splitlines() if line.startswith("| ")]
    return [row for row in rows if not row.startswith("| fault | what you see |")]


class Documents(unittest.TestCase):
    def test_every_relative_link_and_anchor_exists(self):
        dead = [line for path in documents() for line in dead_links(path, path.read_text())]
        self.assertEqual(dead, [])

    def test_the_index_links_every_page_of_operations(self):
        for name in PAGES:
            self.assertIn(f"(operations/{name}.md)", OPERATIONS.read_text())

    def test_the_check_itself_sees_a_dead_link_and_a_dead_anchor(self):
        text = "## There\n[a](README.md) [b](#there) [c](gone.md) [d](#gone) `[e](x)`"
        self.assertEqual([line.split(": ")[1] for line in dead_links(OPERATIONS, text)],
                         ["no gone.md", "no heading #gone"])  # fmt: skip

    def test_the_list_of_commands_is_the_programs(self):
        readme = (SOURCE / "consumer/cli/README.md").read_text()
        commands = readme[readme.index("\n## Commands") : readme.index("\nExit codes:")]
        listed = set(re.findall(r"(?m)^    fencepost (\w+)", commands))
        words = run(FENCEPOST, "--help").stdout.partition("Subcommands:")[2]
        self.assertEqual(listed, set(re.findall(r"(?m)^  (\w+)  ", words)))
        for command in ("locks", "dlq", "lock", "bench", "tables"):
            below = run(FENCEPOST, command, "--help").stdout.partition("Subcommands:")[2]
            for word in re.findall(r"(?m)^  (\w+)  ", below):
                self.assertRegex(commands, rf"fencepost {command} [a-z|]*\b{word}\b")

    def test_options_that_the_list_and_the_readme_name_exist(self):
        readme = "\n".join((SOURCE / path).read_text()
                           for path in ("README.md", "consumer/cli/README.md"))  # fmt: skip
        for line in re.findall(r"(?m)^    fencepost (.*)", readme):
            words = re.match(r"[a-z]+(?: [a-z|]+)?(?= |$)", line)[0].split()
            command = [words[0]]
            if words[0] in ("locks", "lock", "dlq", "bench", "tables") and len(words) > 1:
                command.append(words[1].split("|")[0])
            known = run(FENCEPOST, *command, "--help", check=False).stdout
            for option in re.findall(r"(--[a-z-]+)\b", line):
                self.assertIn(option, known, line)


def sources() -> dict[pathlib.Path, list[str]]:
    """The sources of each folder outside tests/."""
    found: dict[pathlib.Path, list[str]] = {}
    for top in ("config", "consumer", "locking", "metrics"):
        for path in sorted((SOURCE / top).rglob("*.*")):
            if path.suffix in (".h", ".cc"):
                found.setdefault(path.parent, []).append(path.name)
    return found


def missing_files(readme: pathlib.Path, text: str) -> list[str]:
    """Files that a README names in backquotes and that are neither in its folder nor at the top."""
    names = re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:h|cc|md|lua|py|sql))`", text)
    return [name for name in names
            if not (readme.parent / name).exists() and not (SOURCE / name).exists()]  # fmt: skip


class Rooms(unittest.TestCase):
    def test_each_folder_of_sources_has_a_readme_with_its_name_in_the_title(self):
        self.assertGreater(len(sources()), 40)
        for folder in sources():
            readme = folder / "README.md"
            self.assertTrue(readme.exists(), f"{folder.relative_to(SOURCE)} has no README.md")
            title = f"# {folder.relative_to(SOURCE)}: "
            self.assertTrue(readme.read_text().startswith(title), readme)

    def test_each_file_that_a_readme_names_exists(self):
        missing = []
        for readme in (folder / "README.md" for folder in sources()):
            for name in missing_files(readme, readme.read_text()):
                missing.append(f"{readme.relative_to(SOURCE)}: {name}")
        self.assertEqual(missing, [])
        made_up = "`dev.py`, `config/gone.h`, `README.md`"
        self.assertEqual(missing_files(SOURCE / "README.md", made_up), ["dev.py", "config/gone.h"])


def missing_tests(text: str) -> list[str]:
    """Tests that a document names as TIER/AREA `Name`, `Name` and that do not exist."""
    return [f"{folder} {name}"
            for folder, names in re.findall(r"\b([a-z0-9]+/\w+)((?:,? `\w+`)+)", text)
            for name in re.findall(r"`(\w+)`", names)
            if name not in tests_in(SOURCE / "tests" / folder)]  # fmt: skip


def planted_points() -> set[str]:
    """The names in Planted("NAME"), in shipped sources and the model of a node."""
    sources = [p for top in ("consumer", "locking", "tests/support")
               for p in (SOURCE / top).rglob("*.cc")]  # fmt: skip
    return {name for p in sources for name in re.findall(r'Planted\("(\w+)"', p.read_text())}


def invariants() -> list[str]:
    """The rows of PROTOCOL's table of invariants."""
    text = (SOURCE / "locking" / "PROTOCOL.md").read_text()
    return re.findall(r"(?m)^\| \d+ \| .*$", text)


def planted_in(row: str) -> set[str]:
    """The planted bugs that an invariant names in quotes, as the sources write them."""
    quoted = "".join(re.findall(r'planted bugs? ((?:"[^"]+"(?:, | and )?)+)', row))
    return {re.sub(r"[^a-z]+", "_", name.lower().replace("'", ""))
            for name in re.findall(r'"([^"]+)"', quoted)}  # fmt: skip


class NamedTests(unittest.TestCase):
    def test_every_known_gap_and_every_defence_names_a_test_that_exists(self):
        for file in ("tests/GAPS.md", "SECURITY.md"):
            text = " ".join((SOURCE / file).read_text().split())
            self.assertRegex(text, r"\b[a-z0-9]+/\w+ `\w+`")
            self.assertEqual(missing_tests(text), [], file)

    def test_every_invariant_names_folders_and_planted_bugs_that_exist(self):
        points = planted_points()
        named = set()
        for row in invariants():
            for folder in re.findall(r"`(tests/[\w/]+)`", row):
                self.assertTrue((SOURCE / folder).is_dir(), f"{row[:60]}: {folder}")
            self.assertEqual(planted_in(row) - points, set(), row[:60])
            named |= planted_in(row)
        self.assertGreater(len(named), 20)

    def test_these_checks_see_a_test_and_a_bug_that_do_not_exist(self):
        self.assertEqual(missing_tests("unit/tidy `DoesNotExist`"), ["unit/tidy DoesNotExist"])
        self.assertEqual(planted_in('| 1 | … (planted bugs "release by name", "a rival\'s") |'),
                         {"release_by_name", "a_rivals"})  # fmt: skip
        self.assertNotIn("a_rivals", planted_points())


class Operations(unittest.TestCase):
    def test_every_fault_names_tests_that_exist(self):
        table = faults()
        self.assertGreater(len(table), 20)
        for row in table:
            shown_by = row.rstrip("| ").rpartition(" | ")[2]
            self.assertRegex(shown_by, r"^[a-z0-9]+/\w+ `\w+`", row[:60])
            self.assertEqual(missing_tests(shown_by), [], row[:60])

    def test_every_row_says_what_is_lost_and_what_to_do(self):
        for row in faults():
            cells = [cell.strip() for cell in row.strip("|").split(" | ")]
            self.assertEqual(len(cells), 5, row[:60])
            self.assertTrue(all(cells), row[:60])

    def test_metrics_events_and_alerts_are_those_of_the_program(self):
        table = (SOURCE / "metrics" / "metric_definitions.h").read_text()
        for name in set(re.findall(r"`fencepost_([a-z_]+)`", TEXT)):
            # In the table without the prefix; the ledger is a table of the database.
            self.assertTrue(name in ("ledger", "positions") or f'"{name}"' in table or
                            f'"fencepost_{name}"' in table, name)  # fmt: skip
        sources = [p for top in ("consumer", "locking", "metrics")
                   for p in (SOURCE / top).rglob("*.[ch]*")]  # fmt: skip
        code = "\n".join(p.read_text() for p in sources)
        for event in ("redis_node_away", "redis_call_refused", "node_problem", "producer_fenced",
                      "handler_exited", "handler_killed", "handler_stderr",
                      "dead_letter_failed"):  # fmt: skip
            self.assertIn(f"`{event}`", TEXT)
            self.assertIn(f'"{event}"', code)
        for words in ("no quorum of lock nodes", "outlived its timeout", " is away",
                      "counts again in", "No record was finished", "it counts at once",
                      "joining the group", "the group is rebalancing", "no right to",
                      "still know lock store", "another session holds a lock"):  # fmt: skip
            self.assertIn(words, " ".join(TEXT.split()))
            self.assertTrue(words in code, words)
        alerts = {rule["alert"] for rule in rules(ALERTS)}
        named = set(re.findall(r"\bFencepost[A-Z]\w+", TEXT))
        self.assertGreater(len(named), 5)
        self.assertEqual(named - alerts, set())

    def test_the_pipeline_files_lint(self):
        for name in ("orders.yaml", "tls.yaml"):
            text = file(name).replace("${SHOP_DSN}", "postgresql://app@db/shop")
            text = text.replace("/etc/fencepost/", "/run/secrets/")  # where check_lint makes them
            check_lint(self, {name: text})

    def test_the_values_render_what_kubernetes_accepts(self):
        locks = Rendered("fencepost-locks", yaml.load(file("locks-values.yaml"), Strict),
                         name="locks")  # fmt: skip
        self.assertEqual(locks.problems(), [])
        self.assertEqual(len(locks.all("StatefulSet")), 5)
        values = yaml.load(file("orders-values.yaml"), Strict)
        values["pipelines"] = {"orders": file("orders.yaml")}
        workers = Rendered("fencepost", values, name="orders")
        self.assertEqual(workers.problems(), [])
        secure = yaml.load(file("secure-values.yaml"), Strict)
        secure["pipelines"] = {"orders": file("tls.yaml").replace("/etc/fencepost", "/run/secrets")}
        rendered = Rendered("fencepost", {**values, **secure}, name="orders")
        self.assertEqual(rendered.problems(), [])
        kinds = {d["kind"] for d in rendered.documents}
        self.assertLessEqual({"ScaledObject", "NetworkPolicy", "ServiceMonitor"}, kinds)
        self.assertEqual(workers.one("Deployment")["metadata"]["name"], "orders-fencepost")
        self.assertIn("deployment/orders-fencepost", TEXT)
        self.assertIn("locks-fencepost-locks-a", [s["metadata"]["name"] for s in
                                                  locks.all("StatefulSet")])  # fmt: skip
        images = {c["image"] for pod in workers.pods() + locks.pods()
                  for c in pod["spec"]["containers"]}  # fmt: skip
        self.assertIn(f"registry.example/fencepost:{VERSION}", images)
        self.assertEqual(len(images), 2, "the worker's, and Redis")
        values = yaml.load(file("locks-values.yaml"), Strict)
        values["init"]["force"] = True
        job = Rendered("fencepost-locks", values, name="locks").one("Job")
        self.assertIn(f"job/{job['metadata']['name']}\n", TEXT)

    def test_one_version_is_named_everywhere(self):
        charts = {name: yaml.safe_load((SOURCE / f"deploy/helm/{name}/Chart.yaml").read_text())
                  for name in ("fencepost", "fencepost-locks")}  # fmt: skip
        said = {chart["version"] for chart in charts.values()} | {charts["fencepost"]["appVersion"]}
        values = yaml.safe_load((SOURCE / "deploy/helm/fencepost-locks/values.yaml").read_text())
        self.assertEqual(said | {values["init"]["image"]["tag"]}, {VERSION})
        self.assertIn(f"\n## {VERSION} - ", (SOURCE / "CHANGELOG.md").read_text())

    def test_every_file_that_a_step_takes_was_brought_or_is_shown(self):
        install = PAGES["systemd"]
        shown = set(re.findall(r"(?m)^```\w+\n# ([\w.]+)$", install))
        taken = set(re.findall(r"(?m)^install -m \d+ (\S+)", install))
        self.assertEqual((taken, taken - shown), ({"orders.yaml", "orders.env"}, set()))
        # tests/deploy/package installs the package.
        packed = set(re.findall(r"/usr/share/fencepost/(\S+)", install))
        self.assertEqual(packed, {"redis/make-acl", "postgres/ledger.sql", "postgres/grants.sql"})

    def test_the_secrets_mean_the_same_to_systemd_and_to_a_shell(self):
        (text,) = [block for block in blocks("sh") if block.startswith("# orders.env\n")]
        for line in text.splitlines()[1:]:
            self.assertRegex(line, r"^[A-Z_]+='[^']*'$")
        named = set(re.findall(r"\$\{([A-Z_]+)\}", file("orders.yaml")))
        self.assertEqual(set(re.findall(r"(?m)^([A-Z_]+)=", text)), named)

    def test_the_rights_are_those_of_the_role_and_the_table_that_the_step_makes(self):
        (step,) = [block for block in blocks("sh") if "CREATE ROLE" in block]
        made = set(re.findall(r"CREATE (?:ROLE|TABLE) (\w+)", step)) | {"fencepost_ledger"}
        grants = (SOURCE / "deploy/postgres/grants.sql").read_text()
        named = re.findall(r"(?m)^GRANT .* ON (\w+) TO (\w+);", grants)
        self.assertEqual({name for pair in named for name in pair}, made)

    def test_the_commands_of_the_runbooks_exist(self):
        text = (SOURCE / "deploy" / "RUNBOOKS.md").read_text()
        found = re.findall(r"`fencepost\s+(locks \w+|dlq \w+|lock \w+|[a-z]+)([^`]*)`", text)
        self.assertGreater(len(found), 4)
        for command, rest in found:
            known = run(FENCEPOST, *command.split(), "--help").stdout
            for option in re.findall(r"--[a-z-]+", rest):
                self.assertIn(option, known, command)

    def test_a_store_is_never_made_anew_without_its_max_ttl(self):
        for path in documents():
            text = re.sub(r"\s+", " ", path.read_text())
            for found in re.findall(r"locks init [^`;#]*--force[^`;#]*", text):
                if path.parent != SOURCE / "locking":  # which says what it is, not how it is done
                    self.assertIn("--max-ttl", found, path)

    def test_commands_are_ones_that_a_shell_and_the_program_understand(self):
        shell = blocks("sh")
        for block in shell:
            run("bash", "-n", "-c", block)
        for line in re.findall(r"(?m)^(?:until )?fencepost (.*?)(?:[#;].*)?$", "\n".join(shell)):
            words = line.split()
            count = 2 if words[0] in ("locks", "lock", "dlq") else 1
            known = run(FENCEPOST, *words[:count], "--help").stdout
            for option in [w for w in words if w.startswith("--")]:
                self.assertIn(option, known, line)
        for path in re.findall(r"(?<![\w/])(?:\./)?(deploy/[\w./-]+)", "\n".join(shell)):
            self.assertTrue((SOURCE / path).exists(), path)


if __name__ == "__main__":
    unittest.main()
