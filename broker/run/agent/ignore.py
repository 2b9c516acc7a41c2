"""What of a folder stays at home, in the words of `.gitignore`.

The patterns are a user's: however they are written, none takes longer than its own length times
that of a path.
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Optional

    Segment = Callable[[str], object]

CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
POSIX = re.compile(r"\[:([a-z]+):\]")
STAR = "*"
NOTHING = "(?!)"


class PatternError(ValueError):
    """It matches nothing."""


class Rule:
    """One line of a file of patterns. Raises PatternError."""

    def __init__(self, line: str) -> None:
        self.keeps = line.startswith("!")
        body = _without_blanks(line[1:] if self.keeps else line)
        self.folders = body.endswith("/")
        body = body.rstrip("/")
        anchored = "/" in body
        words = body.lstrip("/").split("/")
        if not any(words):
            raise PatternError(line)
        self.name = None if anchored or words == ["**"] else segment(words[0])
        """Of a pattern that is one name, wherever that is."""
        self.steps = [] if self.name else _steps(words)

    def matches(self, parts: "list[str]", is_folder: bool) -> bool:
        if self.folders and not is_folder:
            return False
        if self.name is not None:
            return bool(self.name(parts[-1]))
        return self._leads_to(parts)

    def _leads_to(self, parts: "list[str]") -> bool:
        """All places in the pattern at once that the names so far may have led to."""
        places = self._on({0})
        for part in parts:
            further = set()
            for place in places:
                step = self.steps[place] if place < len(self.steps) else _no_step
                if step is None:
                    further.add(place)
                elif step(part):
                    further.add(place + 1)
            places = self._on(further)
        return len(self.steps) in places

    def _on(self, places: "set[int]") -> "set[int]":
        """With those behind a `**`, which may stand for nothing."""
        found = set(places)
        for place in sorted(places):
            at = place
            while at < len(self.steps) and self.steps[at] is None:
                at += 1
                found.add(at)
        return found


class Ignored:
    """The patterns of one folder; the last one that matches counts."""

    def __init__(self, lines: "Iterable[str]") -> None:
        self.rules = [rule for rule in map(_rule, lines) if rule is not None]
        self.rules.reverse()

    def has(self, path: str, is_folder: bool) -> bool:
        """Whether it stays at home, and with a folder all that is in it."""
        if not self.rules:
            return False
        parts = path.split("/")
        found = (rule for rule in self.rules if rule.matches(parts, is_folder))
        rule = next(found, None)
        return rule is not None and not rule.keeps

    def covers(self, path: str, is_folder: bool) -> bool:
        """Whether it stays at home, or a folder that it is in."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self.has(folder, True) for folder in above) or self.has(path, is_folder)


def _rule(line: str) -> "Optional[Rule]":
    """None for a comment, and for what matches nothing in git either."""
    if not line.strip() or line.startswith("#"):
        return None
    try:
        return Rule(line)
    except PatternError:
        return None


def _without_blanks(text: str) -> str:
    """At its end, but for one that is escaped."""
    bare = text.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and bare != text else bare


def _no_step(_name: str) -> bool:
    """The pattern is at its end, and the path goes on."""
    return False


def _steps(words: "list[str]") -> "list[Optional[Segment]]":
    """One for each name of a path; None for `**`: any number of names."""
    if words[-1] == "**":
        words = [*words[:-1], STAR, "**"]  # something in the folder, not itself
    return [None if word == "**" else segment(word) for word in words]


def segment(text: str) -> "Segment":
    """Tells names that match a pattern without slashes. Raises PatternError."""
    chunks, plain = [""], True
    at = 0
    while at < len(text):
        if text[at] == STAR:
            at += 1
            chunks.append("")
            continue
        piece, at = _piece(text, at)
        plain = plain and text[at - 1] not in "?]"
        chunks[-1] += piece
    if plain and len(chunks) == 1:
        return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL).__eq__
    return re.compile(_joined(chunks) + r"\Z", re.DOTALL).match


def _joined(chunks: "list[str]") -> str:
    """With a star between each: what is in the middle is taken where it comes first, for good."""
    first, last = chunks[0], chunks[-1]
    if len(chunks) == 1:
        return first
    middle = [
        "(?=(?P<g{0}>.*?{1}))(?P=g{0})".format(number, chunk)
        for number, chunk in enumerate(chunks[1:-1])
        if chunk
    ]
    return "{}{}.*{}".format(first, "".join(middle), last)


def _piece(text: str, at: int) -> "tuple[str, int]":
    """One character of a pattern as an expression, and where the next one begins."""
    char = text[at]
    if char == "?":
        return ".", at + 1
    if char == "[":
        return _bracket(text, at + 1)
    if char == "\\":
        at += 1
        if at == len(text):
            raise PatternError(text)
    return re.escape(text[at]), at + 1


def _bracket(text: str, at: int) -> "tuple[str, int]":
    """What stands behind a `[`, as `_piece`."""
    no = text[at : at + 1] in ("!", "^")
    at += no
    found, first = [], True
    while first or text[at : at + 1] != "]":
        first = False
        piece, at = _member(text, at)
        found.append(piece)
    inside = "".join(found)
    if not inside:
        return "." if no else NOTHING, at + 1
    return "[{}{}]".format("^" if no else "", inside), at + 1


def _member(text: str, at: int) -> "tuple[str, int]":
    """A character, a range or a class in brackets."""
    posix = POSIX.match(text, at)
    if posix is not None:
        if posix.group(1) not in CLASSES:
            raise PatternError(text)
        return CLASSES[posix.group(1)], posix.end()
    low, at = _char(text, at)
    if text[at : at + 1] != "-" or text[at + 1 : at + 2] in ("]", ""):
        return _escaped(low), at
    high, at = _char(text, at + 1)
    return ("{}-{}".format(_escaped(low), _escaped(high)) if low <= high else ""), at


def _char(text: str, at: int) -> "tuple[str, int]":
    at += text[at : at + 1] == "\\"
    if at >= len(text):
        raise PatternError(text)
    return text[at], at + 1


def _escaped(char: str) -> str:
    return char if char.isalnum() else "\\" + char
