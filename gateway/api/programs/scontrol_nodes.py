"""scontrol: changes of nodes, and `power`; what belongs to the configuration is refused by name."""

from collections.abc import Iterable, Mapping

from broker.model.commands import SetNode
from broker.model.errors import SpzError
from broker.model.ids import NodeName
from gateway.api.programs.scontrol import TOO_FEW, Asked, Verb
from gateway.api.programs.scontrol_words import BadValue, Word
from gateway.api.wire import Answer
from gateway.query.nodes import node_views
from sbatch_shim.grammar.errors import error_line
from sbatch_shim.grammar.hostlist import HostlistError, expand

NO_CHANGE = "No changes specified\n"
UNSUPPORTED = "Update of this parameter is not supported: {}\nRequest aborted\n"
UPDATE = "slurm_update error: {}\n"
FOREIGN = "Invalid user id"
STATES: Mapping[str, str] = {
    "drain": "drain",
    "down": "down",
    "fail": "drain",
    "resume": "resume",
    "idle": "resume",
    "undrain": "undrain",
    "power_down": "power_down",
    "power_down_asap": "power_down_asap",
}
NEEDS_REASON = ("drain", "down", "fail")
NO_REASON = "You must specify a reason when DOWNING or DRAINING a node. Request denied\n"
VALID = (
    "Request aborted\n"
    "Valid states are: DRAIN DOWN FAIL RESUME UNDRAIN POWER_DOWN POWER_DOWN_ASAP\n"
    "Not all states are valid given a node's prior state\n"
)
WAY_OUT: Mapping[str, str] = {
    "future": "declared nodes are all in the configuration: add them there",
    "noresp": "a node that does not answer is found to be so by itself",
    "power_up": "machines are bought when jobs need them",
    "power_down_force": "cancel what runs there, then POWER_DOWN",
}
"""States that Slurm has and no node of ours is put into, and what to do."""
CONFIGURED: Mapping[str, int] = {
    "activefeatures": 3,
    "availablefeatures": 3,
    "comment": 3,
    "cpubind": 3,
    "extra": 2,
    "features": 1,
    "gres": 1,
    "instanceid": 9,
    "instancetype": 9,
    "nodeaddr": 5,
    "nodehostname": 5,
    "resumeafter": 7,
    "topology": 3,
    "weight": 1,
}
"""Keys of a node that Slurm changes and the configuration says here; letters that are enough."""
NOT_OURS = "{} of a node is not supported by SkyPurza: {}"
ALL_NODES = "all"


async def change(asked: Asked, words: list[Word]) -> Answer:
    """`update nodename=NODES state=STATE [reason=TEXT]`; a reason alone is a new reason."""
    own = [word for word in words if word.names("nodename", 3)]
    others = [word for word in words if word not in own]
    known = {key: word.value or "" for word in others for key in KEYS if word.names(key, 3)}
    for word in others:
        if not any(word.names(key, 3) for key in KEYS):
            raise _refused(word)
    if not known:
        raise BadValue(NO_CHANGE)
    state = known.get("state", "reason").lower()
    if state in WAY_OUT:
        raise BadValue(error_line("scontrol", NOT_OURS.format(f"State={state}", WAY_OUT[state])))
    if state not in (*STATES, "reason"):
        text = next(word.text for word in others if word.names("state", 3))
        raise BadValue(f"Invalid input: {text}\n{VALID}")
    reason = known.get("reason", "")
    if state in NEEDS_REASON and not reason:
        raise BadValue(NO_REASON)
    return await _each(asked, own[0].value or "", STATES.get(state, state), reason=reason)


KEYS = ("state", "reason")


def _refused(word: Word) -> BadValue:
    if any(word.names(key, least) for key, least in CONFIGURED.items()):
        way = "change the configuration, then scontrol reconfigure"
        return BadValue(error_line("scontrol", NOT_OURS.format(word.text.partition("=")[0], way)))
    return BadValue(UNSUPPORTED.format(word.text))


async def _each(asked: Asked, names: str, state: str, *, reason: str = "") -> Answer:
    if not asked.admin:
        raise BadValue(UPDATE.format(FOREIGN))
    try:
        for name in _named(asked, names):
            await asked.desk.ask_once(
                asked.call, SetNode(node=NodeName(name), by=asked.by, state=state, reason=reason)
            )
    except HostlistError:
        raise BadValue(UPDATE.format("Invalid node name specified")) from None
    except SpzError as error:
        raise BadValue(UPDATE.format(error.message)) from None
    return Answer()


def _named(asked: Asked, names: str) -> Iterable[str]:
    if names.lower() == ALL_NODES:
        return [str(view.name) for view in node_views(asked.desk.snapshot()) if view.record]
    return expand(names)


async def power(asked: Asked) -> Answer:
    """`power down [asap|force] NODES`, `power up NODES` (25.11)."""
    if len(asked.words) < 2:
        return Answer(err=TOO_FEW.format("power"), code=1)
    way, *rest = (word for word in asked.words if not word.lower().startswith("reason="))
    how = rest.pop(0).lower() if len(rest) > 1 else ""
    state = f"power_{way.lower()}" + (f"_{how}" if how else "")
    if state in WAY_OUT:
        return Answer(
            err=error_line("scontrol", NOT_OURS.format(f"power {way}", WAY_OUT[state])), code=1
        )
    if state not in STATES or not rest:
        return Answer(err=f"invalid power argument:{how or way}\n", code=1)
    try:
        return await _each(asked, rest[0], STATES[state])
    except BadValue as bad:
        return Answer(err=str(bad), code=1)


VERBS: Mapping[str, Verb] = {"power": power}
