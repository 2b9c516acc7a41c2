"""scontrol without a command: lines are read and each is sent as a command of its own.

Loaded by the shim when the service asks for it. What it knows of scontrol are the words that change
how a prompt goes on (22.05).
"""

import posix

from seldom import read_line, unreachable  # type: ignore[import-not-found]
from shim import Command, ContactError, RefusalError, write  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROMPT = b"scontrol: "
AGAIN = b"!!"
LEAVE = (b"exit", b"quit")
TURNED = {
    b"all": (b"--all", b"--hide"),
    b"hide": (b"--hide", b"--all"),
    b"oneliner": (b"--oneliner", b""),
    b"details": (b"--details", b""),
    b"verbose": (b"--verbose", b"--quiet"),
    b"quiet": (b"--quiet", b"--verbose"),
}
"""Words, the option that each stands for from then on, and the one that it takes away."""
LEAST = 3
BLANKS = b" \t\n"


class Session:
    """What a prompt keeps from line to line."""

    def __init__(self, command: "Any", options: "list[bytes]") -> None:
        self.command = command
        self.options = options
        self.last: "list[bytes]" = []
        self.code = 0
        self.silent = not posix.isatty(0)
        """Whether lines are not seen as they are typed: then they are repeated."""

    def run(self) -> int:
        """Until `exit`, `quit` or the end of input; 1 once any line has failed."""
        while True:
            write(1, PROMPT)
            line = read_line()
            if self.silent or not line:
                write(1, line or b"\n")
            if not line:
                return self.code
            words = split(line)
            if words == [AGAIN]:
                words = self.last
            self.last = words
            if not words:
                continue
            if is_short_for(words[0], LEAVE) and len(words) == 1:
                return self.code
            self.code = max(self.code, self.answer(words))

    def answer(self, words: "list[bytes]") -> int:
        """Sends a line; a word that holds from now on is kept too, if it was right."""
        one = Command(self.command.program, [*self.options, *words], self.command.address)
        one.patience = self.command.patience
        try:
            code: int = one.run()
        except ContactError:
            return int(unreachable(one, b""))
        except RefusalError as refusal:
            write(2, b"%b: error: %b\n" % (one.program, refusal.args[0]))
            return 1
        if code == 0:
            self.turn(words[0])
        return code

    def turn(self, word: bytes) -> None:
        found = is_short_for(word, TURNED)
        if found:
            on, off = TURNED[found]
            self.options = [one for one in self.options if one not in (on, off)] + [on]


def split(line: bytes) -> "list[bytes]":
    """Words between blanks, which quotes keep together; those of a value are taken off (22.05)."""
    words, word, quote = [], b"", b""
    for number in line:
        letter = bytes((number,))
        if letter in BLANKS and not quote:
            words.append(word)
            word = b""
            continue
        if letter in (b"'", b'"') and quote in (b"", letter):
            quote = b"" if quote else letter
            if b"=" in word:
                continue
        word += letter
    return [word for word in (*words, word.rstrip(b"\n")) if word]


def is_short_for(word: bytes, names: "Any") -> bytes:
    """The name that a word of three letters or more begins, in any case; empty without one."""
    word = word.lower()
    fits = (name for name in names if name.startswith(word) and len(word) >= LEAST)
    return next(fits, b"")


def run(command: "Any", options: "list[bytes]") -> int:
    """The prompt's exit status."""
    return Session(command, options).run()
