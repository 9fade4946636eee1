"""A program in a pseudo terminal, what its screen shows, and a picture of that (SVG)."""

import codecs
import fcntl
import html
import os
import pty
import re
import select
import struct
import termios
import time

COLORS = {"0": "#e6edf3", "31": "#ff7b72", "32": "#7ee787", "36": "#79c0ff"}
WIDTH, HEIGHT = 8.4, 18  # of a character, in pixels
SEQUENCE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])")


class Screen:
    """What a terminal shows: the escape sequences that the demo writes, and no others."""

    def __init__(self, columns: int):
        self.columns = columns
        self.rows = [[]]  # each a list of (character, color)
        self._row = self._column = 0
        self._color = "0"
        self._rest = ""

    def feed(self, text: str):
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = SEQUENCE.match(text, at)
                if found is None:  # the rest of it comes with the next piece
                    self._rest = text[at:]
                    return
                self._obey(*found.groups())
                at = found.end()
            else:
                self._put(text[at])
                at += 1

    def _obey(self, parameter: str, command: str):
        if command == "m":
            self._color = parameter or "0"
        elif command == "A":
            self._row = max(0, self._row - int(parameter or 1))
        elif command == "J":
            del self.rows[self._row + 1 :]
            del self.rows[self._row][self._column :]
        else:
            raise AssertionError(f"the demo wrote an unknown sequence: {command}")

    def _put(self, character: str):
        if character == "\r":
            self._column = 0
            return
        if character == "\n" or self._column == self.columns:
            self._row += 1
            if self._row == len(self.rows):
                self.rows.append([])
            if character == "\n":
                return
            self._column = 0
        row = self.rows[self._row]
        row += [(" ", "0")] * (self._column - len(row))
        row[self._column : self._column + 1] = [(character, self._color)]
        self._column += 1

    def lines(self) -> list[str]:
        return ["".join(c for c, _ in row).rstrip() for row in self.rows]

    def copy(self) -> list[list]:
        return [list(row) for row in self.rows]


class Recording:
    """Of a program that runs in a terminal of this size. `stop` sees each frame: true ends it by ^C."""

    def __init__(self, argv, columns=90, rows=40, stop=lambda screen: False, limit=200, **variables):
        self.frames, self.raw, self.longest_silence = [], "", 0.0
        self.screen = Screen(columns)
        begin = last = time.monotonic()
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(argv[0], argv, {**os.environ, "TERM": "xterm", "LANG": "C.UTF-8", **variables})
        before, stopped = termios.tcgetattr(terminal), False
        decoder = codecs.getincrementaldecoder("utf-8")()
        while True:
            ready, _, _ = select.select([terminal], [], [], 1)
            now = time.monotonic()
            if now - begin > limit:
                os.kill(pid, 9)
            if not ready:
                continue
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # it has ended
                break
            self.longest_silence = max(self.longest_silence, now - last)
            last = now
            text = decoder.decode(piece)
            self.raw += text
            self.screen.feed(text)
            if text.endswith("\n"):
                self.frames.append(self.screen.copy())
            if not stopped and stop(self.screen):
                self.settings_kept = termios.tcgetattr(terminal) == before
                os.write(terminal, b"\x03")
                stopped = True
        os.close(terminal)
        self.status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def last_frame(self, words: str, without: str) -> list:
        """The last screen that had these words, and not yet the others."""
        return [f for f in self.frames if words in text_of(f) and without not in text_of(f)][-1]


def text_of(rows) -> str:
    return "\n".join("".join(c for c, _ in row) for row in rows)


def _runs(row):
    """(column, text, color): characters of one color, between gaps."""
    runs = []
    for column, (character, color) in enumerate(row):
        gap = character == " " and (column + 1 == len(row) or row[column + 1][0] == " ")
        if gap or (runs and runs[-1][1] == "" and character == " "):
            runs.append((column + 1, "", color))
        elif runs and runs[-1][2] == color and runs[-1][1]:
            runs[-1] = (runs[-1][0], runs[-1][1] + character, color)
        else:
            runs.append((column, character, color))
    return [(column, text, color) for column, text, color in runs if text.strip()]


def svg(frames: list[tuple[str, list]], columns: int) -> str:
    """Terminals one below the other, each with a title. The background is the picture's own, so that it
    can be read on a light page and on a dark one."""
    parts, y = [], 0
    for title, rows in frames:
        while rows and not text_of(rows[-1:]).strip():
            rows = rows[:-1]
        height = (len(rows) + 2) * HEIGHT + 8
        parts.append(f'<rect x="1" y="{y + 1}" width="{columns * WIDTH + 22:.0f}" '
                     f'height="{height}" rx="6" fill="#0d1117" stroke="#6e7681"/>')  # fmt: skip
        parts.append(f'<text x="12" y="{y + HEIGHT}" fill="#9198a1">{html.escape(title)}</text>')
        for number, row in enumerate(rows):
            for column, text, color in _runs(row):
                parts.append(
                    f'<text x="{12 + column * WIDTH:.1f}" y="{y + (number + 2) * HEIGHT + 6}" '
                    f'textLength="{len(text) * WIDTH:.1f}" fill="{COLORS[color]}">'
                    f"{html.escape(text)}</text>")  # fmt: skip
        y += height + 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * WIDTH + 24:.0f} {y}" '
            'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14">\n'
            + "\n".join(parts) + "\n</svg>\n")  # fmt: skip
