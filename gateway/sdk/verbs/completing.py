"""completion: what shells know of `spz`, made from the table of verbs."""

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from broker.model.errors import Refused
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import FLAG, PAIR, Opt, Verb
from gateway.sdk.verbs.line import Values as Given
from gateway.sdk.verbs.overview import groups
from gateway.sdk.verbs.table import VERBS

SHELLS = ("bash", "zsh", "fish")
BASH = """\
# Completion of spz, written by `spz completion`.
_spz_add() {{
    local word
    for word in $1; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done
}}
_spz_clusters() {{
    local key name rest
    while read -r key name rest; do
        [[ $key == Host && $name != *-worker[0-9]* ]] && _spz_add "$name"
    done 2>/dev/null < "$HOME/.skypurza/ssh/hosts"
}}
_spz() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" said="" word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        [[ $word == -* ]] || said="$said$word "
    done
    case $before in
{values}
    esac
    case $said in
{verbs}
    esac
}}
complete -o default -F _spz spz
"""
ZSH = """\
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
"""
FISH = """\
# Completion of spz, written by `spz completion`.
function __spz_said
    set -l words (commandline -opc | string match -v -- '-*')
    string match -q -- "$argv *" "$words[2..-1] "
end
function __spz_next
    set -l words (commandline -opc | string match -v -- '-*')
    test "$words[2..-1]" = "$argv"
end
function __spz_clusters
    string match -rg '^Host (.+)$' < ~/.skypurza/ssh/hosts 2>/dev/null | string match -rv -- '-worker\\d+$'
end
"""  # noqa: E501 - a line of fish's
PLACES = {
    "bash": ".local/share/bash-completion/completions/spz",
    "zsh": ".skypurza/completion/spz.zsh",
    "fish": ".config/fish/completions/spz.fish",
}
"""Below the home; bash (with bash-completion) and fish look there by themselves."""
ZSH_LINE = "source ~/.skypurza/completion/spz.zsh"


def completion(given: Given, counter: Counter) -> int:
    """Prints the script of a shell, or puts it where the shell finds it. Raises Refused."""
    shell = _shell(given["words"], counter)
    path = Path(counter.environ.get("HOME") or "/") / PLACES[shell]
    if given["uninstall"]:
        path.unlink(missing_ok=True)
        print(f"{path}: not there any more")
        return 0
    if not given["install"]:
        print(script(shell), end="")
        return 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(shell), encoding="utf-8")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}", hint=f"`spz completion {shell}`") from error
    print(f"{path}: new shells have it")
    if shell == "zsh":
        counter.say(f"put this into ~/.zshrc: {ZSH_LINE}")
    return 0


def _shell(words: list[str], counter: Counter) -> str:
    """The one named; with `auto`, or none, that of the user. Raises Refused."""
    asked = words[0] if words else "auto"
    name = Path(counter.environ.get("SHELL", "")).name if asked == "auto" else asked
    if name not in SHELLS:
        raise Refused(f"no completion for shell {name!r}", hint=f"one of {', '.join(SHELLS)}")
    return name


def script(shell: str) -> str:
    """The whole text for one of SHELLS."""
    if shell == "fish":
        return FISH + "".join(f"{line}\n" for line in _fish())
    bash = BASH.format(values="\n".join(_values()), verbs="\n".join(_cases()))
    return f"{ZSH if shell == 'zsh' else ''}{bash}"


def _values() -> Iterator[str]:
    """Where an option that takes one of a few was typed just before; other values are files."""
    options = {name: opt for verb in VERBS for opt in verb.options for name in opt.names.split()}
    taken: dict[str, list[str]] = {}
    for name, opt in options.items():
        if words := " ".join(opt.choices):
            taken.setdefault(words, []).append(name)
    clusters = sorted(name for name, opt in options.items() if opt.key == "cluster")
    yield f"    {'|'.join(clusters)}) _spz_clusters; return ;;"
    for words, names in taken.items():
        yield f"    {'|'.join(sorted(names))}) _spz_add {quote(words)}; return ;;"


def _cases() -> Iterator[str]:
    """The longest verbs first: the first that fits what was said is the one."""
    for verb in sorted(VERBS, key=lambda one: -len(one.name.split())):
        below, words = _below(verb.name), "_spz_clusters" if _of_clusters(verb) else ":"
        yield f"    '{verb.name} '*) case $cur in"
        yield f"        -*) _spz_add {quote(' '.join(_names(verb)))} ;;"
        yield f"        *) {f'_spz_add {quote(below)}' if below else words} ;; esac ;;"
    for group in sorted(groups(), key=lambda one: -len(one.split())):
        yield f"    '{group} ') _spz_add {quote(_below(group))} ;;"
    yield f"    '') _spz_add {quote(_below(''))} ;;"


def _names(verb: Verb) -> list[str]:
    names = [name for opt in verb.options for name in opt.names.split()]
    denied = [_denied(opt) for opt in verb.options if opt.kind == PAIR]
    return ["-h", "--help", *names, *denied]


def _denied(opt: Opt) -> str:
    """The other one of a pair."""
    return f"--no-{opt.names.split()[-1].removeprefix('--')}"


def _of_clusters(verb: Verb) -> bool:
    return "CLUSTER" in verb.words


def _below(group: str) -> str:
    """The words that may follow."""
    before = f"{group} " if group else ""
    found = (one.name.removeprefix(before) for one in VERBS if one.name.startswith(before))
    return " ".join(dict.fromkeys(name.split()[0] for name in found))


def _fish() -> Iterator[str]:
    for group in ["", *sorted(groups())]:
        yield f"complete -c spz -f -n '__spz_next {group}' -a '{_below(group)}'"
    for verb in VERBS:
        when = f"-n '__spz_said {verb.name}'"
        yield f"complete -c spz {when} -s h -l help -d 'What it does, and its options.'"
        for opt in verb.options:
            yield f"complete -c spz {when} {_fish_option(opt)}"
            if opt.kind == PAIR:
                yield f"complete -c spz {when} -l {_denied(opt)[2:]}"
        if _of_clusters(verb):
            yield f"complete -c spz -f {when} -a '(__spz_clusters)'"


def _fish_option(opt: Opt) -> str:
    names = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        for name in opt.names.split()
    ]
    words = "(__spz_clusters)" if opt.key == "cluster" else " ".join(opt.choices)
    takes = "" if opt.kind in {FLAG, PAIR} else f" -x -a '{words}'" if words else " -r"
    told = opt.help.replace("\\", "\\\\").replace("'", "\\'")
    return f"{' '.join(names)}{takes} -d '{told}'"
