"""Reads a Dockerfile."""

import dataclasses
import pathlib
import re

DOCKERFILE = pathlib.Path(__file__).parents[3] / "deploy" / "Dockerfile"


@dataclasses.dataclass
class Stage:
    image: str
    name: str
    instructions: list[tuple[str, str]]  # ("RUN", "apt-get update && …")

    def values(self, instruction: str) -> list[str]:
        return [value for word, value in self.instructions if word == instruction]

    def packages(self) -> list[str]:
        """What its apt-get install lines name."""
        found = []
        for line in self.values("RUN"):
            for command in re.split(r"&&|;", line):
                words = command.split()
                if words[:2] == ["apt-get", "install"]:
                    found += [word for word in words[2:] if not word.startswith("-")]
        return found


def stages(path=DOCKERFILE) -> list[Stage]:
    text = re.sub(r"(?m)^\s*#.*\n", "", path.read_text()).replace("\\\n", " ")
    found: list[Stage] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        word, _, value = line.strip().partition(" ")
        if word == "FROM":
            image, _, name = value.partition(" AS ")
            found.append(Stage(image.strip(), name.strip(), []))
        else:
            found[-1].instructions.append((word, " ".join(value.split())))
    return found
