"""The manual's list of verbs, made from their table."""

from gateway.sdk.verbs.table import VERBS


def verbs_page() -> str:
    """Markdown: each verb with its words and options."""
    lines = ["| command | options | what |", "| --- | --- | --- |"]
    for verb in VERBS:
        names = ", ".join(f"`{opt.names.split()[-1]}`" for opt in verb.options)
        command = f"spz {verb.name} {verb.words.rstrip('!')}".strip().replace("|", "\\|")
        lines.append(f"| `{command}` | {names} | {verb.help} |")
    return "\n".join(lines)
