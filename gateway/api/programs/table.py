"""Every command that the service answers."""

from collections.abc import Mapping

from gateway.api.programs import (
    salloc,
    sattach,
    scancel,
    scontrol,
    scontrol_jobs,
    scontrol_nodes,
    scontrol_reservations,
    scontrol_steps,
    srun,
)
from gateway.api.programs.notes import noting
from gateway.api.programs.sacct import Sacct
from gateway.api.programs.sacctmgr import Sacctmgr
from gateway.api.programs.sbatch import Sbatch
from gateway.api.programs.sbcast import sbcast
from gateway.api.programs.scontrol_assoc import AssocMgr
from gateway.api.programs.scontrol_list import LISTS
from gateway.api.programs.scontrol_show import Keywords, Show
from gateway.api.programs.scontrol_site import SHOWN, WORDS
from gateway.api.programs.scontrol_update import update
from gateway.api.programs.sdiag import sdiag
from gateway.api.programs.seff import seff
from gateway.api.programs.sinfo import Sinfo
from gateway.api.programs.sprio import Sprio
from gateway.api.programs.squeue import Squeue
from gateway.api.programs.sreport import sreport
from gateway.api.programs.sshare import Sshare
from gateway.api.programs.sstat import sstat
from gateway.api.stream import Interactive
from gateway.api.text import Program
from gateway.config.settings import Config
from gateway.query.siteconfig import settings_lines

_VERBS = {
    **scontrol.VERBS,
    **scontrol_jobs.VERBS,
    **scontrol_nodes.VERBS,
    **scontrol_reservations.VERBS,
    "update": update,
}


def programs(config: Config) -> Mapping[str, Program | Interactive]:
    """The commands of a site, by name; what `scontrol show config` prints is the site's."""
    assoc = AssocMgr(config.accounting.tres)
    shown: Keywords = {
        "reservations": (1, scontrol_reservations.show),
        "assoc_mgr": (2, assoc),
        "cache": (2, assoc),
        **scontrol_steps.SHOWN,
        **SHOWN,
    }
    show = Show(settings_lines(config), {**LISTS, **WORDS}, shown)
    known: dict[str, Program | Interactive] = {
        "sacct": Sacct(config.accounting.tres, flags=config.accounting.store_flags),
        "sacctmgr": Sacctmgr(config),
        "salloc": Interactive(salloc.run),
        "sattach": Interactive(sattach.run),
        "sbatch": Sbatch(),
        "sbcast": sbcast,
        "scancel": scancel.run,
        "scontrol": scontrol.program(show, _VERBS),
        "sdiag": sdiag,
        "seff": seff,
        "sinfo": Sinfo(),
        "sprio": Sprio(config.priority),
        "squeue": Squeue(),
        "sreport": sreport,
        "srun": Interactive(srun.run),
        "sshare": Sshare(config.accounting.tres),
        "sstat": sstat,
    }
    return noting(known)
