"""Asks what to do next where a run has stopped: a command a line, from the terminal or from whatever stdin is."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Final

from kvtier_cli.render.console import Output
from kvtier_cli.wording import did_you_mean, escape, shorten, shown

_LONGEST: Final = 1_000
"""Bytes of one line of input."""


class Pause(Enum):
    """What may be asked for at a pause."""

    NEXT = "next"
    CONTINUE = "continue"
    STATE = "state"
    BREAK = "break"
    QUIT = "quit"
    HELP = "help"
    END = ""
    """There is nobody to ask, or nobody any more."""


HELP: Final = (
    ("Enter, n", "run the next op, and stop there"),
    ("c", "continue to the next break, or to the end of the fixture"),
    ("s", "show the whole state"),
    ("b BREAK", "break on denied, evicted:BLOCK or mismatch too; b alone lists the breaks"),
    ("q", "quit: what is behind is not checked, and the exit status is 130"),
    ("?", "show this"),
)

_LETTERS: Final = {"": Pause.NEXT, "?": Pause.HELP, **{pause.value[0]: pause for pause in Pause if pause.value}}
_WORDS: Final = {pause.value: pause for pause in Pause if pause.value}


class Pauses:
    """A source of commands. On a terminal it asks for each, and the end of input quits. Otherwise the lines of stdin
    are the commands, shown as they are taken; when they end nobody is asked any more. Where stdin is a terminal and
    stdout is not, nobody could see the question, and nobody is asked at all."""

    def __init__(self, out: Output) -> None:
        self._out = out
        typed = sys.stdin is not None and sys.stdin.isatty()
        self._asks = typed and sys.stdout.isatty()
        self._ended = sys.stdin is None or (typed and not self._asks)
        self._told = False

    def ask(self) -> tuple[Pause, str]:
        """The next command and what follows it; unknown words are answered here, with the nearest that is known."""
        while True:
            line = self._line()
            if line is None:
                return (Pause.QUIT if self._asks else Pause.END), ""
            word, _, rest = line.strip().partition(" ")
            pause = _LETTERS.get(word) or _WORDS.get(word.lower())
            if pause is not None:
                return pause, rest.strip()
            print(f"there is no command {shown(word)}: {did_you_mean(word, _WORDS)}")

    def _line(self) -> str | None:
        """One line of input, None at its end."""
        if self._ended:
            return None
        if self._asks:
            prompt = "> " if self._told else "Enter next, c continue, s state, b break, q quit, ? help > "
            self._told = True
            print(self._out.style(prompt.rstrip(), "note"), end=" ", flush=True)
        line = sys.stdin.buffer.readline(_LONGEST).decode(errors="replace")
        self._ended = not line
        if not line:
            if self._asks:
                print()
            return None
        if not self._asks:
            print(f"> {escape(shorten(line.strip()))}".rstrip())
        return line
