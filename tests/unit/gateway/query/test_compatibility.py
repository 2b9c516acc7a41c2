"""The page on compatibility says what the tables say."""

import pytest

from gateway.query.compatibility import CLASSES, fields_page, known_page, options_of, options_page
from gateway.query.fields import BY_LONG
from sbatch_shim.grammar.options import TABLES


def test_every_option_of_every_command_is_in_one_class() -> None:
    for command, table in TABLES.items():
        listed = [opt.long for cls, _ in CLASSES for opt in options_of(command, cls)]
        known = [opt.long for opt in table.by_long.values() if not opt.same]
        assert sorted(listed) == sorted(known), command


def test_options_stand_below_their_command_and_class() -> None:
    page = options_page()
    sbatch = page.partition("### sbatch\n")[2].partition("###")[0]
    served, _, refused = sbatch.partition("**Refused:**")
    assert "`-J, --job-name=`" in served
    assert "`--nice[=]`" in served
    assert "`--hold`" in served.replace("-H, ", "")
    assert refused.strip()


def test_columns_that_never_change_bear_a_star() -> None:
    lines = fields_page().splitlines()
    assert "| `%i` | `JobArrayId` | JOBID |" in lines
    assert "| `%V` | `Cluster` \\* | CLUSTER |" in lines
    named = BY_LONG["originraw"]
    assert f"|  | `{named.long}` \\* | {named.header} |" in lines
    assert any("`WCKeyID` \\*" in line and "`Elapsed`," in line for line in lines)


def test_known_differences_are_grouped_by_reason() -> None:
    text = "# why\n\nadmin/sdiag  the hardware\nsacct/two another\nsqueue/three the hardware\n"
    assert known_page(text).splitlines()[2:] == [
        "| the hardware | `admin/sdiag`, `squeue/three` |",
        "| another | `sacct/two` |",
    ]
    assert known_page("# nothing\n") == "No case is on the list."


@pytest.mark.parametrize("line", ["admin/sdiag", "sdiag the hardware", "admin/ x"])
def test_a_difference_without_a_reason_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="area/name reason"):
        known_page(line)
