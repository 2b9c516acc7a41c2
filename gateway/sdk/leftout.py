"""What of a workdir is not brought to machines elsewhere, told before anybody misses it."""

from broker.run.agent.carry import listing, rules
from broker.run.agent.ignore import Ignored
from broker.stage.ignore import OF_TASKS

SHOWN = 5


def left_out(folder: str) -> list[str]:
    """Files below a folder that its rules leave at home, by path; a folder stands for all in it."""
    every = {path: row[0] for path, row in listing(folder, Ignored(()))}
    kept = dict(listing(folder, Ignored(rules(folder, list(OF_TASKS)))))
    gone = every.keys() - kept.keys()
    above = {f"{path}/" for path in gone if every[path] == "d"}
    inside = (path for path in gone if not any(path.startswith(one) for one in above))
    return sorted(f"{path}/" if every[path] == "d" else path for path in inside)


def left_out_text(found: list[str]) -> str:
    """In one line; empty for nothing."""
    more = len(found) - SHOWN
    names = ", ".join(found[:SHOWN]) + (f", and {more} more" if more > 0 else "")
    return f"not brought, by .skyignore or .gitignore: {names}" if found else ""
