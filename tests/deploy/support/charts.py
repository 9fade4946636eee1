"""Helm's engine, and what it renders as objects that tests can ask about."""

import functools
import importlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import jsonschema
import kubernetes_validate
import yaml

from support.processes import SOURCE, _die_with_parent, run

CHARTS = SOURCE / "deploy" / "helm"
# From the oldest that the charts admit (kubeVersion) to the newest that the package knows.
KUBERNETES = ("1.25.0", "1.29.0", "1.33.0", "1.37.0")
# Not in Kubernetes: where the schemas of their definitions are.
CUSTOM = {"PodMonitor": "prometheus_operator.v1", "PrometheusRule": "prometheus_operator.v1",
          "ScaledObject": "keda.v1alpha1", "ServiceMonitor": "prometheus_operator.v1"}  # fmt: skip

_HOOK, _NO_HOOK = "helm.sh/hook", "test.invalid/hook"


class ChartError(Exception):
    """What Helm said when it refused."""


class Helm:
    """One process of Helm's engine, for as long as the test program runs."""

    _process = None

    @classmethod
    def _ask(cls, *words) -> str:
        if cls._process is None:
            libs = run(SOURCE / "tests/support/fetch-helm", limit=300).stdout.strip()
            program = SOURCE / "tests/deploy/support/HelmEngine.java"
            cls._process = subprocess.Popen(
                ["java", "-Xshare:auto", "-XX:+UseSerialGC", "-cp", f"{libs}/*", str(program)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,
            )
        process = cls._process
        process.stdin.write(("\t".join(str(w) for w in words) + "\n").encode())
        process.stdin.flush()
        status, length = process.stdout.readline().decode().split()
        text = process.stdout.read(int(length)).decode()
        if status != "ok":
            raise ChartError(text)
        return text

    @classmethod
    def lint(cls, chart) -> str:
        return cls._ask("lint", chart)

    @classmethod
    def package(cls, chart, folder):
        cls._ask("package", chart, folder)

    @classmethod
    def notes(cls, chart, values: dict, **where) -> str:
        """What `helm install` prints at its end; the library leaves that out, so as a document."""
        text = cls.template(chart, values, **where, notes=True)
        (document,) = [d for d in load(text) if d["kind"] == "Notes"]
        return document["text"]

    @classmethod
    def template(cls, chart, values: dict | None = None, name="test", namespace="prod",
                 kubernetes=KUBERNETES[0], notes=False, secret: dict | None = None) -> str:
        """`secret`: what the cluster has of the one that a template looks up; else there is none."""
        with tempfile.TemporaryDirectory() as folder:
            # The library renders for Kubernetes 1.20 and cannot be told otherwise: without the
            # line that refuses that, and with the version written in where a template asks for it.
            # What comes out is checked against the versions above. It would look for a cluster where a
            # template looks something up. And it leaves out hooks: under another name they are no
            # hooks to it.
            copy = pathlib.Path(folder) / pathlib.Path(chart).name
            shutil.copytree(chart, copy)
            about = (copy / "Chart.yaml").read_text()
            (copy / "Chart.yaml").write_text(re.sub(r"(?m)^kubeVersion:.*\n", "", about))
            for template in (copy / "templates").iterdir():
                text = template.read_text().replace(_HOOK, _NO_HOOK)
                text = text.replace(".Capabilities.KubeVersion.Version", f'"v{kubernetes}"')
                found = "(fromJson `" + json.dumps({"data": secret} if secret else {}) + "`)"
                text = re.sub(r'\(lookup "v1" "Secret" [^)]*\)', lambda _: found, text)
                template.write_text(text)
            if notes:
                text = (copy / "templates" / "NOTES.txt").read_text()
                (copy / "templates" / "notes.yaml").write_text(
                    f'{{{{ define "notes" }}}}{text}{{{{ end }}}}\n'
                    'kind: Notes\ntext: {{ include "notes" . | toJson }}\n'
                )
            file = pathlib.Path(folder) / "values.yaml"
            file.write_text(yaml.safe_dump(values or {}))
            text = cls._ask("template", copy, name, namespace, file)
            return text.replace(_NO_HOOK, _HOOK)


class Strict(yaml.SafeLoader):
    """YAML in which a key may stand only once: Helm and kubectl would take the last one."""


def _mapping(loader, node, deep=False):
    keys = [key.value for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise yaml.constructor.ConstructorError(None, None, f"twice: {twice}", node.start_mark)
    return yaml.SafeLoader.construct_mapping(loader, node, deep)


Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load(text: str) -> list[dict]:
    return [document for document in yaml.load_all(text, Loader=Strict) if document]


@functools.cache
def custom(kind: str) -> jsonschema.Draft202012Validator:
    """What the definition of a custom resource says of it; a key that it does not name is an error."""
    module = importlib.import_module(f"cloudcoil.models.{CUSTOM[kind]}")
    schema = getattr(module, kind).model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        if "properties" in part:
            part.setdefault("additionalProperties", False)
    return jsonschema.Draft202012Validator(schema)


class Rendered:
    """The documents of one rendering, by kind and name."""

    def __init__(self, chart: str, values: dict, **where):
        self.text = Helm.template(CHARTS / chart, values, **where)
        self.documents = load(self.text)

    def all(self, kind: str) -> list[dict]:
        return [d for d in self.documents if d["kind"] == kind]

    def one(self, kind: str, name: str | None = None) -> dict:
        found = [d for d in self.all(kind) if name in (None, d["metadata"]["name"])]
        assert len(found) == 1, f"{len(found)} of {kind} {name or ''}"
        return found[0]

    def pods(self) -> list[dict]:
        """The pod templates of all workloads."""
        return [d["spec"]["template"] for d in self.documents if "template" in d.get("spec", {})]

    def problems(self, versions=KUBERNETES) -> list[str]:
        """What Kubernetes would refuse, unknown fields included, in each of these versions."""
        found = []
        for document in self.documents:
            if document["kind"] in CUSTOM:
                found += [f"{document['kind']} {error.json_path}: {error.message}"
                          for error in custom(document["kind"]).iter_errors(document)]  # fmt: skip
                continue
            for version in versions:
                name = f"{document['kind']} {document['metadata']['name']} on {version}"
                try:
                    kubernetes_validate.validate(document, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    found.append(f"{name}: {error.message}")
                except kubernetes_validate.utils.SchemaNotFoundError as error:
                    found.append(f"{name}: {error}")
        return found


def selected(selector: dict, labels: dict) -> bool:
    """Whether matchLabels (or a Service's selector) picks these labels."""
    return selector.items() <= labels.items() and bool(selector)


def values_files(folder: pathlib.Path) -> dict[str, dict]:
    return {p.stem: yaml.load(p.read_text(), Loader=Strict) for p in sorted(folder.glob("*.yaml"))}
