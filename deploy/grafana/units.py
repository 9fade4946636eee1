"""Numbers as the dashboard's units show them, and round places for an axis."""

import math


def plain(value: float) -> str:
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if sign == 'k' else limit):.3g}{sign}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def seconds(value: float) -> str:
    size = abs(value)
    if size == 0:
        return "0 s"
    for limit, unit in ((1e-3, "µs"), (1, "ms"), (60, "s"), (3600, "min"), (86400, "h")):
        if size < limit:
            per = {"µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}[unit]
            return f"{value / per:.3g} {unit}"
    return f"{value / 86400:.3g} d"


def size(value: float) -> str:
    for limit, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.3g} B"


def show(value: float, unit: str) -> str:
    if unit == "s":
        return seconds(value)
    if unit == "bytes":
        return size(value)
    if unit == "percentunit":
        return f"{value * 100:.3g}%"
    return plain(value) + ("/s" if unit == "ops" else "")


def ticks(low: float, high: float, most=4) -> list[float]:
    """Round values that cover low to high."""
    if high <= low:
        high = low + (abs(low) or 1)
    raw = (high - low) / most
    scale = 10 ** math.floor(math.log10(raw))
    step = next(m * scale for m in (1, 2, 2.5, 5, 10) if m * scale >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]
