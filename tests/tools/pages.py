"""Pages of the documentation whose commands are run: ``python tests/tools/pages.py docs/page.md``.

In a block of ``console``, a line after ``$`` is a command and the lines up to the next one are what it
prints; a line of three dots stands for any lines. A block of ``python`` after which a line of the page names
a file ("as `name.py`") is that file. Called as a program, this runs a page and writes what commands print
into it, but for outputs with dots.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from cbrank.cli import main

BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"as `(\w+\.py)`:\n\n```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
TIMED = re.compile(r"^((Note|cbrank): compiling.*|.* rows/s, .*)\n", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?")


def commands_of(block):
    """Return the commands of a block, each with what it prints."""
    found = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:].strip(), ""])
        else:
            found[-1][1] += line
    return found


def run(line):
    """Run a command here; return what a terminal would show, but for what depends on the machine."""
    line, piped, rest = line.partition(" | ")
    words = shlex.split(line)
    if words[0] == "cbrank":
        result = CliRunner().invoke(main, words[1:], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        shown = TIMED.sub("", result.output)
    else:
        words[0] = {"python": sys.executable}.get(words[0], words[0])
        shown = _shown(shlex.join(words))
    return _shown(rest, shown) if piped else shown


def _shown(line, given=None):
    done = subprocess.run(
        line, shell=True, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", check=True,
    )  # fmt: skip
    return TIMED.sub("", done.stdout)


def write_files(text, folder):
    """Write the files that a page has."""
    for name, code in FILE.findall(text):
        Path(folder, name).write_text(code, "utf-8")


def same(told, printed):
    """Say whether a page tells what was printed: words are the same, numbers but for rounding."""
    parts = [
        part.strip("\n").split("\n") for part in re.split(r"^\.\.\.\n", told, flags=re.MULTILINE)
    ]
    lines, at = printed.strip("\n").split("\n"), 0
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == [""]:
            if last:
                return number > 0 or lines == [""]
            continue
        starts = range(at, len(lines) - len(part) + 1) if number else [0]
        for start in reversed(starts) if last else starts:
            if all(map(_alike, part, lines[start : start + len(part)])):
                at = start + len(part)
                break
        else:
            return False
        if last:
            return at == len(lines)
    return True


def _alike(told, printed):
    words, others = ([*filter(None, _NUMBER.split(line))] for line in (told, printed))
    if [word.strip() for word in words] != [word.strip() for word in others]:
        return False
    pairs = zip(_NUMBER.findall(told), _NUMBER.findall(printed), strict=False)
    return len(_NUMBER.findall(told)) == len(_NUMBER.findall(printed)) and all(
        abs(_value(one) - _value(other)) <= max(1.5 * _unit(one), 1e-6 * abs(_value(one)))
        for one, other in pairs
    )


def _value(number):
    return float(number.replace(",", ""))


def _unit(number):
    """Return what one more in the last digit after the point is worth; 0 for a whole number."""
    digits, _, exponent = number.partition("e")
    places = len(digits.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - places) if places else 0.0


def refresh(path):
    """Run the commands of a page and write what they print into it."""
    path = path.resolve()
    text = path.read_text("utf-8")

    def anew(block):
        lines = []
        for command, told in commands_of(block[1]):
            printed = run(command)
            dots = re.search(r"^\.\.\.$", told, flags=re.MULTILINE)
            if dots and not same(told, printed):
                print(f"Not as on the page: {command}\n{printed}")
            lines.append(f"$ {command}\n{told if dots else printed}")
        return f"```console\n{''.join(lines)}```\n"

    with tempfile.TemporaryDirectory() as folder:
        write_files(text, folder)
        os.chdir(folder)
        path.write_text(BLOCK.sub(anew, text), "utf-8")


if __name__ == "__main__":
    refresh(Path(sys.argv[1]))
