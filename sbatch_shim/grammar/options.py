"""The one table of options, keyed by (command, long name)."""

from __future__ import annotations

from collections import namedtuple

from sbatch_shim.grammar.options_plugins import PLUGIN_OPTIONS
from sbatch_shim.grammar.options_query import QUERY_OPTIONS
from sbatch_shim.grammar.options_submit import SUBMIT_OPTIONS
from sbatch_shim.grammar.table import Opt, env_names

OPTIONS: tuple[Opt, ...] = (*SUBMIT_OPTIONS, *QUERY_OPTIONS)

BY_LONG: dict[tuple[str, str], Opt] = {
    (command, opt.long): opt for opt in OPTIONS for command in opt.cmds
}

Table = namedtuple("Table", "command by_long by_short variables")
"""A command's options by long name, and by letter; and pairs of a variable and its option, those of
one option together, the strongest last."""


def lookup(command: str, *, plugins: bool = False) -> Table:
    """The options of a command, with those of plugins where a site has any.

    Raises KeyError for a command without a table.
    """
    return (WITH_PLUGINS if plugins else TABLES)[command]


def _table(command: str, more: tuple[Opt, ...] = ()) -> Table:
    by_long = {long: opt for (cmd, long), opt in BY_LONG.items() if cmd == command}
    by_long.update({opt.long: opt for opt in more if command in opt.cmds})
    by_short = {opt.short: opt for opt in by_long.values() if opt.short and not opt.same}
    variables = [(name, opt) for opt in by_long.values() for name in env_names(opt, command)]
    return Table(command, by_long, by_short, variables)


TABLES: dict[str, Table] = {
    command: _table(command) for command in sorted({command for command, _ in BY_LONG})
}

WITH_PLUGINS: dict[str, Table] = {
    command: _table(command, PLUGIN_OPTIONS) for command in ("sbatch", "salloc", "srun")
}
