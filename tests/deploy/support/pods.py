"""Rendered pods made real without a cluster: the image's root read-only, volumes laid out and
mounted as the kubelet does, the container's command, variables and user, and its probes."""

import base64
import pathlib
import re
import tempfile

from support.dockerfile import Root
from support.processes import APART, Contained, Process, as_root, http_get, run

# In namespaces of its own: the root read-only, a /proc, each volume, then the user, without rights.
# $1 root, $2 user, $3 group, $4 groups, $5 number of mounts, then MODE SOURCE TARGET of each.
_ENTER = """
root=$1 user=$2 group=$3 groups=$4 mounts=$5 && shift 5 &&
mount --make-rprivate / && mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" &&
mount -t proc proc "$root/proc" &&
for ((i = 0; i < mounts; i++)); do
  mount --bind "$2" "$root$3" && mount -o "remount,bind,$1" "$root$3" && shift 3 || exit
done && cd / &&
exec chroot "$root" /usr/bin/setpriv --reuid "$user" --regid "$group" --groups "$groups" \
  --bounding-set=-all --inh-caps=-all --no-new-privs --pdeathsig KILL "$@"
"""


class Cluster:
    """What pods refer to: ConfigMaps of renderings, Secrets, names of hosts, one image for all."""

    def __init__(self, cls, secrets: dict[str, dict[str, str]], hosts: dict[str, str]):
        self.secrets, self.config_maps = secrets, {}
        self.image = Root(cls)
        self._volumes = tempfile.mkdtemp(prefix="fencepost-volumes-")
        cls.addClassCleanup(lambda: run(*as_root("rm", "-rf", self._volumes)))
        run("chmod", "755", self._volumes)
        names = "".join(f"{address} {name}\n" for name, address in hosts.items())
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("127.0.0.1 localhost\n" + names)
            file.flush()
            self.image.add(file.name, "/etc/hosts")

    def add_program(self, path: str):
        """A program of this machine, with its libraries."""
        self.image.add(pathlib.Path(path).resolve(), path)
        for library in re.findall(r"=> (/\S+)", run("ldd", path).stdout):
            if not pathlib.Path(self.image.path + library).exists():
                self.image.add(pathlib.Path(library).resolve(), library)

    def apply(self, rendered):
        self.config_maps |= {d["metadata"]["name"]: d["data"] for d in rendered.all("ConfigMap")}
        self.secrets |= {
            d["metadata"]["name"]: {k: base64.b64decode(v).decode() for k, v in d["data"].items()}
            for d in rendered.all("Secret")
        }

    def folder(self, name: str, mode="755") -> pathlib.Path:
        path = pathlib.Path(self._volumes, name)
        run(*as_root("mkdir", "-p", str(path)))
        run(*as_root("chmod", mode, str(path)))
        return path

    def mount_point(self, target: str, is_file: bool):
        path = self.image.path + target
        run(*as_root("mkdir", "-p", str(pathlib.Path(path).parent) if is_file else path))
        if is_file:
            run(*as_root("touch", path))


class Pod:
    """A pod of a workload's template, of one container."""

    def __init__(self, test, cluster: Cluster, name: str, workload: dict):
        self._test, self._cluster, self.name = test, cluster, name
        self.spec = workload["spec"]["template"]["spec"]
        (self.container,) = self.spec["containers"]
        security = self.spec["securityContext"]
        assert self.container["securityContext"]["readOnlyRootFilesystem"]
        self._group = str(security["fsGroup"])
        mounts = [self._mount(m) for m in self.container.get("volumeMounts", [])]
        self._prefix = [
            *APART, "bash", "-c", _ENTER, "enter", cluster.image.path,
            str(security["runAsUser"]), str(security["runAsGroup"]), self._group,
            str(len(mounts)), *[word for mount in mounts for word in mount],
            "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        ]  # fmt: skip

    def _mount(self, mount: dict) -> tuple[str, str, str]:
        volumes = {v["name"]: v for v in self.spec["volumes"]}
        source = self._volume(mount["name"], volumes.get(mount["name"]))
        if "subPath" in mount:
            source = source / mount["subPath"]
        self._cluster.mount_point(mount["mountPath"], source.is_file())
        return "ro" if mount.get("readOnly") else "rw", str(source), mount["mountPath"]

    def _volume(self, name: str, volume: dict | None) -> pathlib.Path:
        """A claim of a StatefulSet where the template has no such volume."""
        path = f"{self.name}-{name}"
        if volume is None:
            made = self._cluster.folder(path, "2775")
            run(*as_root("chgrp", self._group, str(made)))
            return made
        made = self._cluster.folder(path)
        if "configMap" in volume:
            data, mode = self._cluster.config_maps[volume["configMap"]["name"]], 0o644
        else:
            secret = volume["secret"]
            data, mode = self._cluster.secrets[secret["secretName"]], secret["defaultMode"]
            if "items" in secret:
                data = {item["path"]: data[item["key"]] for item in secret["items"]}
        for key, text in data.items():
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(text)
                file.flush()
                words = ["-g", self._group, "-m", f"{mode:o}", file.name, str(made / key)]
                run(*as_root("install", *words))
        return made

    def _environment(self) -> list[str]:
        words = list(self._cluster.image.stage.values("ENV"))
        for variable in self.container.get("env", []):
            value = variable.get("value")
            source = variable.get("valueFrom", {})
            if "secretKeyRef" in source:
                reference = source["secretKeyRef"]
                value = self._cluster.secrets[reference["name"]][reference["key"]]
            elif "fieldRef" in source:
                value = {"metadata.name": self.name}[source["fieldRef"]["fieldPath"]]
            words.append(f"{variable['name']}={value}")
        return words

    def words(self, *argv: str) -> list[str]:
        """The command line of `kubectl exec POD -- ARGV`."""
        return as_root(*self._prefix, *self._environment(), *argv)

    def command(self, *more: str) -> list[str]:
        entry = ["/usr/bin/tini", "--", "/usr/bin/fencepost"]
        own = [*self.container.get("command", entry), *self.container.get("args", [])]
        return self.words(*own, *more)

    def start(self, *more: str) -> Contained:
        return Contained(self._test, self.command(*more))

    def probe(self, kind: str, change=lambda script: script) -> tuple[bool, str]:
        """Whether a probe succeeds now, and what it said."""
        probe = self.container[kind]
        if "exec" in probe:
            words = [change(word) for word in probe["exec"]["command"]]
            done = run(*self.words(*words), check=False, limit=60)
            return done.returncode == 0, done.stdout + done.stderr
        ports = {p["name"]: p["containerPort"] for p in self.container["ports"]}
        asked = probe["httpGet"]
        status, text = http_get(f"http://127.0.0.1:{ports[asked['port']]}{asked['path']}")
        return 200 <= status < 400, text
