"""scontrol's words about itself and the controller, as 22.05 answers them where it can be seen."""

import pytest

from gateway.api.desk import Desk
from gateway.api.programs import scontrol as scontrol_changes
from gateway.api.programs import scontrol_jobs, scontrol_nodes, scontrol_reservations
from gateway.api.programs.scontrol_help import COMMANDS
from gateway.api.programs.scontrol_help import SHOWN as ENTITIES_TOLD
from gateway.api.programs.scontrol_list import LISTS
from gateway.api.programs.scontrol_show import ENTITIES, KEYWORDS, Show
from gateway.api.programs.scontrol_site import SHOWN, WORDS
from gateway.api.programs.scontrol_steps import SHOWN as STEPS
from gateway.api.wire import Answer, Call
from tests.unit.gateway.api.office import PEOPLE, Office
from tests.unit.gateway.query.desk import ask, desk_of, snapshot
from tests.unit.gateway.query.scene import queue

NOT_OURS = "scontrol: error: {} is not supported by SkyPurza: "
NO_REBOOT = (
    "scontrol: error: RebootProgram isn't defined\nscontrol_reboot_nodes error: Unspecified error\n"
)


async def shown(desk: Desk, call: Call) -> Answer:
    return Answer()


CHANGES = scontrol_changes.program(shown, {**scontrol_changes.VERBS, **scontrol_reservations.VERBS})


def scontrol(line: str, uid: int = 0) -> Answer:
    desk = desk_of(snapshot(queue()))
    return ask(Show(lists=WORDS, entities=SHOWN), desk, ["scontrol", *line.split()], uid=uid)


SAID = (
    # the line, standard output, standard error (or its beginning), exit status
    *((word, "", "", 0) for word in ("all", "hide", "details", "oneliner", "quiet", "verbose")),
    *((word, "", "", 0) for word in ("exit", "quit", "all 1", "hide 1", "completing", "cluster")),
    ("oneliner 1", "", "too many arguments for keyword:oneliner\n", 1),
    ("quit 1", "", "too many arguments for keyword:quit\n", 1),
    ("ping x", "", "too many arguments for keyword:ping\n", 1),
    *(
        (f"show {what}", "", "too many arguments for keyword:show\n", 1)
        for what in ("job 1 2", "node a b", "partition a b", "hostnames a b")
    ),
    ("completing x", "", "too many arguments for keyword:completing\n", 1),
    ("version x", "slurm 25.11.7\n", "too many arguments for version keyword\n", 1),
    ("cluster nosuch", "", "scontrol: error: No cluster 'nosuch' known by database.\n", 1),
    ("errnumstr", "", "one arguments required for keyword:errnumstr\n", 1),
    ("errnumstr x", "", "numeric arguments required for keyword:errnumstr\n", 1),
    ("errnumstr 2010", "Invalid user id\n", "", 0),
    ("errnumstr 1", "Operation not permitted\n", "", 0),
    ("errnumstr 99999", "Unknown error 99999\n", "", 0),
    ("reboot", "", "Missing node list. Specify ALL|<NodeList>\n", 1),
    ("reboot ASAP reason=x", "", "Missing node list. Specify ALL|<NodeList>\n", 1),
    ("reboot ASAP ec2-1", "", NO_REBOOT, 1),
    ("cancel_reboot", "", "missing argument for keyword:cancel_reboot\n", 1),
    ("cancel_reboot ec2-1", "", "slurm_update error: Invalid node state specified\n", 1),
    ("setdebug", "", "too few arguments for keyword:setdebug\n", 1),
    ("setdebug bogus", "", "invalid debug level: bogus\n", 1),
    ("setdebug 10", "", "invalid debug level: 10\n", 1),
    ("setdebug debug3", "", NOT_OURS.format("setdebug"), 1),
    ("setdebugflags", "", "too few arguments for keyword:setdebugflags\n", 1),
    (
        "setdebugflags x",
        "",
        "invalid debug flag: x\nUsage: setdebugflags [+|-]NAME\n",
        1,
    ),
    ("setdebugflags +backfill", "", NOT_OURS.format("setdebugflags"), 1),
    ("schedloglevel", "", "too few arguments for keyword:schedloglevel\n", 1),
    ("schedloglevel 5", "", "invalid schedlog level: 5\n", 1),
    (
        "schedloglevel 1",
        "",
        "slurm_set_schedlog_level error: Requested operation is presently disabled\n",
        1,
    ),
    ("fsdampeningfactor", "", "too few arguments for keyword:fsdampeningfactor\n", 1),
    ("fsdampeningfactor x", "", "invalid dampening factor: x\n", 0),
    ("fsdampeningfactor 3", "", NOT_OURS.format("fsdampeningfactor"), 1),
    ("token", "", "Error fetching token\n", 1),
    ("token lifespan=10 username=root", "", "Error fetching token\n", 1),
    ("token x", "", "Invalid option: `x`\n", 1),
    ("show hostlist", "", "invalid encode argument\n", 1),
    ("show hostlistsorted", "", "invalid encode argument\n", 1),
    ("show daemons x", "", "too many arguments for keyword:show\n", 1),
    ("write bogus", "", "invalid write argument:bogus\n", 1),
    ("pidinfo", "", "missing argument for keyword:pidinfo\n", 1),
    ("pidinfo x", "", "Failed to locate job for requested pid\n", 1),
    ("getaddrs", "", "too few arguments for keyword:getaddrs\n", 1),
    ("getaddrs ec2-[1-2]", "ec2-1: 127.0.0.1:0\nec2-2: 127.0.0.1:0\n", "", 0),
    ("getaddrs nope", "", "scontrol: error: Unable to get addresses", 1),
    ("write", "", "too few arguments for keyword:write\n", 1),
    ("write batch_script", "", "too few arguments for keyword:write\n", 1),
    ("write bogus 1", "", "invalid write argument:bogus\n", 1),
    ("write config", "", NOT_OURS.format("write config"), 1),
    ("show burstbuffer", "", "", 0),
    ("show dwstat", "", "", 0),
)


@pytest.mark.parametrize(("line", "out", "err", "code"), SAID)
def test_words_about_the_site_are_answered_as_slurm_does(
    line: str, out: str, err: str, code: int
) -> None:
    answer = scontrol(line)
    assert (answer.out, answer.code) == (out, code)
    assert str(answer.err).startswith(err)
    assert bool(answer.err) is bool(err)


@pytest.mark.parametrize("line", ["setdebug 5", "setdebugflags +x", "schedloglevel 1"])
def test_what_is_for_operators_is_denied_to_others(line: str) -> None:
    answer = scontrol(line, uid=2001)
    assert answer.code == 1
    assert "error: Permission denied" in str(answer.err)


@pytest.mark.parametrize(
    ("line", "uid", "err"),
    [
        ("shutdown", 2001, "slurm_shutdown error:Invalid user id\n"),
        ("abort", 2001, "slurm_shutdown error:Invalid user id\n"),
        ("shutdown x", 2001, "invalid shutdown argument:x\n"),
        ("shutdown", 0, "scontrol: error: shutdown is not supported by SkyPurza: `spz api stop`"),
        ("takeover 1", 0, "takeover: invalid backup controller index (1)\n"),
        ("takeover", 0, "scontrol: error: takeover is not supported by SkyPurza: there is no"),
        ("suspend", 0, "too few arguments for keyword:suspend\n"),
        ("resume", 2001, "too few arguments for keyword:resume\n"),
        ("create", 0, "too few arguments for create keyword\n"),
        ("delete", 0, "too few arguments for delete keyword\n"),
    ],
)
def test_words_that_change_something_are_answered_as_slurm_does(
    line: str, uid: int, err: str
) -> None:
    answer = Office().run(CHANGES, *line.split(), name="scontrol", by=PEOPLE[uid])
    assert (answer.code, str(answer.err)[: len(err)]) == (1, err)


def test_help_lists_every_command_and_everything_that_is_shown() -> None:
    listed = {usage.split()[0] for usage, _ in COMMANDS}
    read = {*scontrol_changes.VERBS, *scontrol_jobs.VERBS, *scontrol_nodes.VERBS}
    read |= {*scontrol_reservations.VERBS, "update", *WORDS, *LISTS, *KEYWORDS, "show"}
    full = {"clusters": "cluster", "reboot_nodes": "reboot"}
    assert listed - {"!!"} == {full.get(word, word) for word in read}
    known = {
        name.removesuffix("s") for name in (*ENTITIES, *STEPS, *SHOWN, "assoc_mgr", "reservation")
    }
    told = {name.removesuffix("s") for name in ENTITIES_TOLD}
    assert told == known - {"jobid", "nodename", "partitionname"}


def test_help_is_what_the_option_of_that_name_tells() -> None:
    said = str(scontrol("help").out)
    assert said.startswith("Usage: scontrol")
    assert said == scontrol("--help").out


def test_without_a_command_there_is_a_prompt_with_the_options_that_were_given() -> None:
    assert scontrol("").prompt == ()
    assert scontrol("-o --all").prompt == ("-o", "--all")
