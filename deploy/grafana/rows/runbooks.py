"""The sections of RUNBOOKS.md, for the last row: a link to one works on every Grafana."""

import pathlib
import re

FILE = pathlib.Path(__file__).parents[2] / "RUNBOOKS.md"
ROW_ID = 1000
GENERAL = "Before anything else"
# The place is part of the panel's address (viewPanel), which people keep: add at the end only, and
# leave the place of one that went.
PLACES = (
    GENERAL,
    "FencepostInvariantViolated",
    "FencepostQuorumLost",
    "FencepostNoWorkerReady",
    "FencepostPipelineStalled",
    "FencepostEndToEndBudgetBurn",
    "FencepostDeadLettersFailing",
    "FencepostLagGrowing",
    "FencepostRedisNodeDown",
    "FencepostLocksExpiring",
    "FencepostLockValidityLow",
    "FencepostFencingRejections",
    "FencepostRebalancing",
    "FencepostRedisClockOff",
    "FencepostRecordStuck",
    "FencepostDeadLettersMany",
    "FencepostDeadLettersNew",
    "FencepostIdConflicts",
)


def panel_id(title: str) -> int:
    return ROW_ID + 1 + PLACES.index(title)


def texts() -> dict[str, str]:
    """Markdown by the title of its section, in the order of the file."""
    parts = re.split(r"(?m)^## (.+)$", FILE.read_text())
    return {title: plain(text) for title, text in zip(parts[1::2], parts[2::2])}


def plain(text: str) -> str:
    """Names the file where a link would lead to one; a link to elsewhere stays."""

    def name(found):
        return f"`{FILE.parent.name}/{found[2]}`" if ":" not in found[2] else found[0]

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", name, text).strip()
