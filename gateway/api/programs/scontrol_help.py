"""What `scontrol help` lists: every command, and what it does here."""

WIDTH = 27

# fmt: off
COMMANDS = (
    ("abort", "refused: the service is ended where it was started"),
    ("all", "show hidden partitions, too (prompt)"),
    ("cancel_reboot NODES", "no node waits for a reboot"),
    ("cluster [NAME]", "there is one: ours"),
    ("completing", "jobs that leave their nodes"),
    ("create SPECIFICATION", "make a reservation"),
    ("delete SPECIFICATION", "take a reservation away"),
    ("details", "show more of what is shown (prompt)"),
    ("errnumstr NUMBER", "what an error number means"),
    ("exit", "leave the prompt"),
    ("fsdampeningfactor FACTOR", "refused: shares are those of the fair tree"),
    ("getaddrs NODES", "by which hosts nodes are reached"),
    ("getent NODE", "no daemons of Slurm's answer for users"),
    ("help", "this list"),
    ("hide", "show no hidden partitions (prompt)"),
    ("hold JOBS", "keep jobs from starting"),
    ("holdu JOBS", "the same; their owners may release them"),
    ("listjobs [NODE]", "jobs that hold nodes"),
    ("listpids [JOB[.STEP]]", "processes of jobs on this host"),
    ("liststeps [NODE]", "steps that run"),
    ("notify JOB TEXT", "a line into a job's standard error"),
    ("oneliner", "show each record in one line (prompt)"),
    ("pidinfo PID", "which job a process of this host belongs to"),
    ("ping", "whether the service answers"),
    ("power down [asap] NODES", "let bought machines go"),
    ("quiet", "print errors only (prompt)"),
    ("quit", "leave the prompt"),
    ("reboot [ASAP] NODES", "as where no RebootProgram is configured"),
    ("reconfigure", "read the configuration anew"),
    ("release JOBS", "let held jobs start"),
    ("requeue [incomplete] JOBS", "put batch jobs back into the queue"),
    ("requeuehold JOBS", "the same, and hold them"),
    ("resume JOBS", "let suspended jobs go on"),
    ("schedloglevel LEVEL", "as where no SlurmSchedLogFile is configured"),
    ("setdebug LEVEL", "refused: log.level in the configuration says it"),
    ("setdebugflags [+|-]FLAG", "refused: the log has levels and no flags"),
    ("show ENTITY [ID]", "show jobs, nodes, partitions and the rest"),
    ("shutdown", "refused: the service is ended where it was started"),
    ("suspend JOBS", "stop running jobs"),
    ("takeover [INDEX]", "refused: there is no other controller"),
    ("token [lifespan=|username=]", "as where no auth/jwt is configured"),
    ("top JOBS", "put jobs first among their user's"),
    ("uhold JOBS", "the same as holdu"),
    ("update SPECIFICATION", "change jobs, steps, nodes, partitions, reservations"),
    ("verbose", "print more (prompt)"),
    ("version", "the version that is presented"),
    ("wait_job JOB", "wait until a job's nodes are up"),
    ("write batch_script JOB", "the script that was submitted, into a file"),
    ("!!", "the last command again (prompt)"),
)
SHOWN = (
    "aliases", "assoc_mgr", "bbstat", "burstbuffer", "config", "daemons", "dwstat", "federation",
    "hostlist", "hostlistsorted", "hostnames", "job", "licenses", "node", "partition",
    "reservation", "slurmd", "step", "topology",
)
# fmt: on
"""What `show` takes."""


def commands_text() -> str:
    """The list below the options."""
    rows = "".join(f"  {usage:<{WIDTH}} {text}\n" for usage, text in COMMANDS)
    half = len(SHOWN) // 2
    shown = ", ".join(SHOWN[:half]) + ",\n    " + ", ".join(SHOWN[half:])
    return f"\nValid <COMMAND> values are:\n{rows}\nENTITY is one of\n    {shown}\n"
