"""The one table of a job's columns, in the order of `squeue --helpFormat` (25.11.7)."""

# ruff: noqa: E501 - a row stays on one line

from typing import Any

from broker.model.job import Job
from gateway.query import job as of
from gateway.query import past, texts
from gateway.query import resources as res
from gateway.query.assocs import association_id
from gateway.query.column import Column, JobGetter
from gateway.query.context import Context
from gateway.query.kinds import (
    BEGUN,
    DEADLINE,
    EMPTY,
    EXIT,
    FLAG,
    HELD,
    HOST,
    HOSTS,
    LIMIT,
    MEMORY,
    MOMENT,
    MONEY,
    NAMED,
    REASON,
    SPAN,
    SPECIAL,
    TEXT,
    TIME_MIN,
    TRES,
)


def always(value: Any) -> JobGetter:
    """The getter of what is the same for every job here, because we have nothing of the kind."""
    return lambda _job, _ctx: value


def option(name: str) -> JobGetter:
    """The getter of an option as it was typed."""

    def given(job: Job, _: Context) -> str | None:
        return job.spec.option(name)

    return given


def given(name: str) -> JobGetter:
    """The getter of a number that is 0 unless an option gives it."""

    def number(job: Job, _: Context) -> str:
        return job.spec.option(name) or "0"

    return number


NONE = always(None)
ZERO = always(0)

# fmt: off
COLUMNS = (
    #      key                  letter -O name             header                scontrol        rest                     kind      value
    Column("account",           "a", "Account",            "ACCOUNT",            "Account",      "account",               TEXT,     of.account),
    Column("accrue_time",       "",  "AccrueTime",         "ACCRUE_TIME",        "AccrueTime",   "accrue_time",           MOMENT,   of.accrued, timed=True),
    Column("admin_comment",     "",  "admin_comment",      "ADMIN_COMMENT",      "AdminComment", "admin_comment",         TEXT,     texts.admin_comment),
    Column("alloc_nodes",       "",  "AllocNodes",         "ALLOC_NODES",        "",             "allocating_node",       TEXT,     texts.submit_host),
    Column("alloc_sid",         "",  "AllocSID",           "ALLOC_SID",          "",             "",                      TEXT,     ZERO),
    Column("array_job_id",      "F", "ArrayJobId",         "ARRAY_JOB_ID",       "",             "array_job_id",          TEXT,     of.array_base),
    Column("array_task_id",     "K", "ArrayTaskId",        "ARRAY_TASK_ID",      "ArrayTaskId",  "array_task_string",     NAMED,    of.array_tasks),
    Column("assoc_id",          "",  "AssocId",            "ASSOC_ID",           "",             "association_id",        TEXT,     association_id),
    Column("batch_flag",        "",  "BatchFlag",          "BATCH_FLAG",         "BatchFlag",    "batch_flag",            FLAG,     of.is_batch),
    Column("batch_host",        "B", "BatchHost",          "EXEC_HOST",          "",             "",                      HOST,     texts.executing_host),
    Column("boards_per_node",   "",  "BoardsPerNode",      "BOARDS_PER_NODE",    "",             "",                      TEXT,     ZERO),
    Column("burst_buffer",      "",  "BurstBuffer",        "BURST_BUFFER",       "BurstBuffer",  "burst_buffer",          TEXT,     option("bb")),
    Column("burst_buffer_state", "", "BurstBufferState",   "BURST_BUFFER_STATE", "",             "burst_buffer_state",    TEXT,     NONE),
    Column("cluster",           "",  "Cluster",            "CLUSTER",            "",             "cluster",               TEXT,     of.cluster),
    Column("cluster_features",  "",  "ClusterFeature",     "CLUSTER_FEATURES",   "ClusterFeatures", "cluster_features",   TEXT,     option("cluster-constraint")),
    Column("command",           "o", "Command",            "COMMAND",            "Command",      "command",               TEXT,     texts.command),
    Column("comment",           "k", "Comment",            "COMMENT",            "Comment",      "comment",               TEXT,     texts.comment),
    Column("container",         "",  "Container",          "CONTAINER",          "Container",    "container",             TEXT,     option("container")),
    Column("container_id",      "",  "ContainerId",        "CONTAINERID",        "ContainerID",  "container_id",          TEXT,     option("container-id")),
    Column("contiguous",        "O", "Contiguous",         "CONTIGUOUS",         "Contiguous",   "contiguous",            FLAG,     res.contiguous),
    Column("cores_per_socket",  "I", "Cores",              "CORES_PER_SOCKET",   "",             "cores_per_socket",      TEXT,     res.cores),
    Column("core_spec",         "X", "CoreSpec",           "CORE_SPEC",          "CoreSpec",     "core_spec",             SPECIAL,  NONE),
    Column("cost",              "",  "Cost",               "COST",               "",             "",                      MONEY,    past.cost, help=False, timed=True),
    Column("cost_rate",         "",  "CostRate",           "COST_PER_HOUR",      "",             "",                      MONEY,    past.cost_rate, help=False, timed=True),
    Column("cost_rate_age",     "",  "CostRateAge",        "PRICE_AGE",          "",             "",                      NAMED,    past.old_rate, help=False, timed=True),
    Column("cpus_per_task",     "",  "CPUsPerTask",        "CPUS_PER_TASK",      "CPUs/Task",    "cpus_per_task",         TEXT,     res.cpus_per_task),
    Column("cpus_per_task_2",   "",  "cpus-per-task",      "CPUS_PER_TASK",      "",             "",                      TEXT,     res.cpus_per_task),
    Column("cpus_per_tres",     "",  "cpus-per-tres",      "CPUS_PER_TRES",      "CpusPerTres",  "cpus_per_tres",         NAMED,    res.cpus_per_tres),
    Column("cron_job",          "",  "CronJob",            "CRON_JOB",           "",             "cron",                  TEXT,     always("No")),
    Column("deadline",          "",  "Deadline",           "DEADLINE",           "Deadline",     "deadline",              DEADLINE, of.deadline),
    Column("delay_boot",        "",  "DelayBoot",          "DELAY_BOOT",         "DelayBoot",    "delay_boot",            SPAN,     texts.delay_boot),
    Column("dependency",        "E", "Dependency",         "DEPENDENCY",         "Dependency",   "dependency",            TEXT,     of.dependency),
    Column("derived_exit_code", "",  "DerivedEC",          "DERIVED_EC",         "DerivedExitCode", "derived_exit_code",  EXIT,     of.derived_exit),
    Column("eligible_time",     "",  "EligibleTime",       "ELIGIBLE_TIME",      "EligibleTime", "eligible_time",         MOMENT,   of.eligible),
    Column("end_time",          "e", "EndTime",            "END_TIME",           "EndTime",      "end_time",              BEGUN,    of.listed_end),
    Column("excluded_nodes",    "x", "ExcNodes",           "EXC_NODES",          "ExcNodeList",  "excluded_nodes",        HOSTS,    res.excluded_nodes),
    Column("exit_code",         "",  "exit_code",          "EXIT_CODE",          "ExitCode",     "exit_code",             EXIT,     of.exit_code),
    Column("features",          "f", "Feature",            "FEATURES",           "Features",     "features",              TEXT,     res.features),
    Column("group_id",          "G", "GroupId",            "GROUP",              "",             "group_id",              TEXT,     of.gid),
    Column("group_name",        "g", "GroupName",          "GROUP",              "",             "group_name",            TEXT,     of.group),
    Column("het_job_id",        "",  "HetJobId",           "HET_JOB_ID",         "HetJobId",     "het_job_id",            NAMED,    of.het_base),
    Column("het_job_id_set",    "",  "HetJobIdSet",        "HET_JOB_ID_SET",     "HetJobIdSet",  "het_job_id_set",        NAMED,    of.het_ids),
    Column("het_job_offset",    "",  "HetJobOffset",       "HET_JOB_OFFSET",     "HetJobOffset", "het_job_offset",        NAMED,    of.het_offset),
    Column("shown_id",          "i", "JobArrayId",         "JOBID",              "",             "",                      TEXT,     of.shown_id),
    Column("job_id",            "A", "JobId",              "JOBID",              "JobId",        "job_id",                TEXT,     of.job_id),
    Column("last_sched_evaluation", "", "LastSchedEval",   "LAST_SCHED_EVAL",    "LastSchedEval", "last_sched_evaluation", MOMENT,  of.scheduled),
    Column("licenses",          "W", "Licenses",           "LICENSES",           "Licenses",     "licenses",              TEXT,     texts.licenses),
    Column("licenses_alloc",    "",  "LicensesAlloc",      "LICENSES_ALLOC",     "LicensesAlloc", "licenses_allocated",   TEXT,     NONE),
    Column("max_cpus",          "",  "MaxCPUs",            "MAX_CPUS",           "",             "max_cpus",              TEXT,     ZERO),
    Column("max_nodes",         "",  "MaxNodes",           "MAX_NODES",          "",             "max_nodes",             TEXT,     res.most_nodes),
    Column("memory_per_tres",   "",  "mem-per-tres",       "MEM_PER_TRES",       "MemPerTres",   "memory_per_tres",       NAMED,    res.memory_per_tres),
    Column("mcs_label",         "",  "MCSLabel",           "MCSLABEL",           "MCS_label",    "mcs_label",             NAMED,    option("mcs-label")),
    Column("minimum_cpus_per_node", "c", "MinCPUs",        "MIN_CPUS",           "MinCPUsNode",  "minimum_cpus_per_node", TEXT,     res.least_cpus),
    Column("memory",            "m", "MinMemory",          "MIN_MEMORY",         "",             "memory_per_node",       MEMORY,   res.memory),
    Column("time_minimum",      "",  "MinTime",            "TIME_MIN",           "TimeMin",      "time_minimum",          TIME_MIN, of.time_min),
    Column("minimum_tmp_disk_per_node", "d", "MinTmpDisk", "MIN_TMP_DISK",       "MinTmpDiskNode", "minimum_tmp_disk_per_node", MEMORY, res.temporary_disk),
    Column("name",              "j", "Name",               "NAME",               "JobName",      "name",                  TEXT,     of.name),
    Column("network",           "",  "Network",            "NETWORK",            "Network",      "network",               TEXT,     option("network")),
    Column("nice",              "y", "Nice",               "NICE",               "Nice",         "nice",                  TEXT,     of.nice),
    Column("nodes",             "N", "NodeList",           "NODELIST",           "NodeList",     "nodes",                 HELD,     res.nodes),
    Column("tasks_per_core",    "",  "NTPerCore",          "NTASKS_PER_CORE",    "",             "tasks_per_core",        NAMED,    option("ntasks-per-core")),
    Column("tasks_per_node",    "",  "NTPerNode",          "NTASKS_PER_NODE",    "",             "tasks_per_node",        TEXT,     res.tasks_per_node),
    Column("tasks_per_socket",  "",  "NTPerSocket",        "NTASKS_PER_SOCKET",  "",             "tasks_per_socket",      NAMED,    option("ntasks-per-socket")),
    Column("tasks_per_board",   "",  "NTPerBoard",         "NTASKS_PER_BOARD",   "",             "tasks_per_board",       TEXT,     ZERO),
    Column("cpus",              "C", "NumCPUs",            "CPUS",               "NumCPUs",      "cpus",                  TEXT,     res.cpu_count),
    Column("node_count",        "D", "NumNodes",           "NODES",              "",             "node_count",            TEXT,     res.node_count),
    Column("tasks",             "",  "NumTasks",           "TASKS",              "",             "tasks",                 TEXT,     res.tasks),
    Column("origin",            "",  "Origin",             "ORIGIN",             "",             "federation_origin",     TEXT,     always("NA")),
    Column("origin_raw",        "",  "OriginRaw",          "ORIGIN_RAW",         "",             "",                      TEXT,     always("NA")),
    Column("oversubscribe",     "h", "OverSubscribe",      "OVER_SUBSCRIBE",     "OverSubscribe", "shared",               TEXT,     res.sharing),
    Column("partition",         "P", "Partition",          "PARTITION",          "Partition",    "partition",             TEXT,     of.partition),
    Column("pending_time",      "",  "PendingTime",        "PENDING_TIME",       "",             "",                      TEXT,     of.waited, timed=True),
    Column("preempt_time",      "",  "PreemptTime",        "PREEMPT_TIME",       "",             "preempt_time",          MOMENT,   NONE),
    Column("prefer",            "",  "Prefer",             "PREFER",             "Prefer",       "prefer",                TEXT,     res.preferred),
    Column("priority_share",    "p", "Priority",           "PRIORITY",           "",             "",                      TEXT,     of.priority_share),
    Column("priority",          "Q", "PriorityLong",       "PRIORITY",           "Priority",     "priority",              TEXT,     of.priority),
    Column("profile",           "",  "Profile",            "PROFILE",            "",             "profile",               TEXT,     texts.profile),
    Column("qos",               "q", "QOS",                "QOS",                "QOS",          "qos",                   TEXT,     of.qos),
    Column("reason",            "r", "Reason",             "REASON",             "Reason",       "state_reason",          REASON,   of.reason),
    Column("nodes_or_reason",   "R", "ReasonList",         "NODELIST(REASON)",   "",             "",                      TEXT,     res.nodes_or_reason),
    Column("reboot",            "",  "Reboot",             "REBOOT",             "Reboot",       "reboot",                TEXT,     ZERO),
    Column("required_nodes",    "n", "ReqNodes",           "REQ_NODES",          "ReqNodeList",  "required_nodes",        HOSTS,    res.wanted_nodes),
    Column("required_switches", "",  "ReqSwitch",          "REQ_SWITCH",         "",             "required_switches",     TEXT,     texts.switch_count),
    Column("requeue",           "",  "Requeue",            "REQUEUE",            "Requeue",      "requeue",               FLAG,     of.requeue),
    Column("resv_name",         "v", "Reservation",        "RESERVATION",        "Reservation",  "resv_name",             TEXT,     texts.reservation),
    Column("resize_time",       "",  "ResizeTime",         "RESIZE_TIME",        "",             "resize_time",           MOMENT,   NONE),
    Column("restart_cnt",       "",  "RestartCnt",         "RESTART_COUNT",      "Restarts",     "restart_cnt",           TEXT,     of.restarts),
    Column("scheduled_nodes",   "Y", "SchedNodes",         "SCHEDNODES",         "",             "scheduled_nodes",       TEXT,     of.planned_nodes),
    Column("geometry",          "z", "SCT",                "S:C:T",              "",             "",                      TEXT,     res.geometry),
    Column("segment_size",      "",  "SegmentSize",        "SEGMENT_SIZE",       "SegmentSize",  "segment_size",          TEXT,     given("segment")),
    Column("siblings_active",   "",  "SiblingsActive",     "ACTIVE_SIBLINGS",    "",             "federation_siblings_active", TEXT, always("NA")),
    Column("siblings_active_raw", "", "SiblingsActiveRaw", "ACTIVE_SIBLINGS_RAW", "",            "",                      TEXT,     always("NA")),
    Column("siblings_viable",   "",  "SiblingsViable",     "VIABLE_SIBLINGS",    "",             "federation_siblings_viable", TEXT, always("NA")),
    Column("siblings_viable_raw", "", "SiblingsViableRaw", "VIALBLE_SIBLINGS_RAW", "",           "",                      TEXT,     always("NA")),
    Column("sluid",             "s", "SLUID",              "SLUID",              "SLUID",        "sluid",                 TEXT,     of.sluid),
    Column("sockets_per_node",  "H", "Sockets",            "SOCKETS_PER_NODE",   "Socks/Node",   "sockets_per_node",      TEXT,     res.sockets),
    Column("sockets_per_board", "",  "SPerBoard",          "SOCKETS_PER_BOARD",  "",             "sockets_per_board",     TEXT,     ZERO),
    Column("start_time",        "S", "StartTime",          "START_TIME",         "StartTime",    "start_time",            MOMENT,   of.start),
    Column("state",             "T", "State",              "STATE",              "JobState",     "job_state",             TEXT,     of.state),
    Column("state_code",        "t", "StateCompact",       "ST",                 "",             "",                      TEXT,     of.state_code),
    Column("standard_error",    "",  "StdErr",             "STDERR",             "",             "standard_error",        TEXT,     texts.stderr),
    Column("standard_input",    "",  "StdIn",              "STDIN",              "",             "standard_input",        TEXT,     texts.stdin),
    Column("standard_output",   "",  "StdOut",             "STDOUT",             "",             "standard_output",       TEXT,     texts.stdout),
    Column("submit_time",       "V", "SubmitTime",         "SUBMIT_TIME",        "SubmitTime",   "submit_time",           MOMENT,   of.submitted),
    Column("system_comment",    "",  "system_comment",     "SYSTEM_COMMENT",     "SystemComment", "system_comment",       TEXT,     texts.system_comment),
    Column("threads_per_core",  "J", "Threads",            "THREADS_PER_CORE",   "",             "threads_per_core",      TEXT,     res.threads),
    Column("time_left",         "L", "TimeLeft",           "TIME_LEFT",          "",             "",                      SPAN,     of.time_left, timed=True),
    Column("time_limit",        "l", "TimeLimit",          "TIME_LIMIT",         "TimeLimit",    "time_limit",            LIMIT,    of.time_limit),
    Column("time_used",         "M", "TimeUsed",           "TIME",               "RunTime",      "",                      SPAN,     of.elapsed, timed=True),
    Column("tres_in_use",       "",  "tres-alloc",         "TRES_ALLOC",         "",             "",                      TRES,     res.tres_in_use),
    Column("tres_bind",         "",  "tres-bind",          "TRES_BIND",          "TresBind",     "tres_bind",             NAMED,    res.tres_bind),
    Column("tres_freq",         "",  "tres-freq",          "TRES_FREQ",          "TresFreq",     "tres_freq",             NAMED,    res.tres_freq),
    Column("tres_per_job",      "",  "tres-per-job",       "TRES_PER_JOB",       "TresPerJob",   "tres_per_job",          NAMED,    res.tres_per_job),
    Column("tres_per_socket",   "",  "tres-per-socket",    "TRES_PER_SOCKET",    "TresPerSocket", "tres_per_socket",      NAMED,    res.tres_per_socket),
    Column("tres_per_task",     "",  "tres-per-task",      "TRES_PER_TASK",      "TresPerTask",  "tres_per_task",         NAMED,    res.tres_per_task),
    Column("user_id",           "U", "UserId",             "UID",                "",             "user_id",               TEXT,     of.uid),
    Column("user_name",         "u", "UserName",           "USER",               "",             "user_name",             TEXT,     of.user),
    Column("maximum_switch_wait_time", "", "Wait4Switch",  "WAIT4SWITCH",        "",             "maximum_switch_wait_time", TEXT,  ZERO),
    Column("wckey",             "w", "WCKey",              "WCKEY",              "WCKey",        "wckey",                 TEXT,     texts.wckey),
    Column("work_dir",          "Z", "WorkDir",            "WORK_DIR",           "WorkDir",      "current_working_directory", TEXT, texts.work_dir),
    # names that still work and are not listed
    Column("tres_per_node",     "b", "tres-per-node",      "TRES_PER_NODE",      "TresPerNode",  "tres_per_node",         NAMED,    res.tres_per_node, help=False),
    Column("gres",              "",  "Gres",               "TRES_PER_NODE",      "",             "",                      NAMED,    res.tres_per_node, help=False),
    Column("shared",            "",  "Shared",             "OVER_SUBSCRIBE",     "",             "",                      TEXT,     res.sharing, help=False),
    Column("tres",              "",  "Tres",               "TRES_ALLOC",         "",             "",                      TRES,     res.tres_in_use, help=False),
    Column("pack_job_id",       "",  "PackJobId",          "HET_JOB_ID",         "",             "",                      NAMED,    of.het_base, help=False),
    Column("pack_job_id_set",   "",  "PackJobIdSet",       "HET_JOB_ID_SET",     "",             "",                      NAMED,    of.het_ids, help=False),
    Column("pack_job_offset",   "",  "PackJobOffset",      "HET_JOB_OFFSET",     "",             "",                      NAMED,    of.het_offset, help=False),
    # of scontrol alone
    Column("array_parent",      "",  "",                   "",                   "ArrayJobId",   "",                      TEXT,     of.array_parent),
    Column("user_and_uid",      "",  "",                   "",                   "UserId",       "",                      TEXT,     of.user_and_uid),
    Column("group_and_gid",     "",  "",                   "",                   "GroupId",      "",                      TEXT,     of.group_and_gid),
    Column("array_throttle",    "",  "",                   "",                   "ArrayTaskThrottle", "array_max_tasks",  TEXT,     of.array_limit),
    Column("limited_end",       "",  "",                   "",                   "EndTime",      "",                      MOMENT,   of.limited_end),
    Column("submitter",         "",  "",                   "",                   "AllocNode:Sid", "",                     TEXT,     texts.submitter),
    Column("node_range",        "",  "",                   "",                   "NumNodes",     "",                      TEXT,     res.node_range),
    Column("task_text",         "",  "",                   "",                   "NumTasks",     "",                      TEXT,     res.task_text),
    Column("request_geometry",  "",  "",                   "",                   "ReqB:S:C:T",   "",                      TEXT,     res.request_geometry),
    Column("tres_requested",    "",  "",                   "",                   "ReqTRES",      "tres_req_str",          TRES,     res.wanted_tres),
    Column("tres_allocated",    "",  "",                   "",                   "AllocTRES",    "tres_alloc_str",        TRES,     res.held_tres),
    Column("task_layout",       "",  "",                   "",                   "NtasksPerN:B:S:C", "",                  TEXT,     res.task_layout),
    Column("memory_per_cpu",    "",  "",                   "",                   "MinMemoryCPU", "memory_per_cpu",        MEMORY,   res.line_memory_per_cpu),
    Column("memory_per_node",   "",  "",                   "",                   "MinMemoryNode", "",                     MEMORY,   res.line_memory_per_node),
    Column("memory_per_gpu",    "",  "",                   "",                   "MinMemoryTRES", "",                     MEMORY,   res.line_memory_per_gpu),
    Column("submit_line",       "",  "",                   "",                   "SubmitLine",   "submit_line",           TEXT,     texts.submit_line),
    Column("extra",             "",  "",                   "",                   "Extra",        "extra",                 TEXT,     option("extra")),
    Column("stderr_path",       "",  "",                   "",                   "StdErr",       "stderr_expanded",       EMPTY,    texts.stderr_path),
    Column("stdin_path",        "",  "",                   "",                   "StdIn",        "stdin_expanded",        EMPTY,    texts.stdin_path),
    Column("stdout_path",       "",  "",                   "",                   "StdOut",       "stdout_expanded",       EMPTY,    texts.stdout_path),
    Column("switches",          "",  "",                   "",                   "Switches",     "",                      TEXT,     texts.switches),
    Column("least_frequency",   "",  "",                   "",                   "CPU_min_freq", "",                      TEXT,     texts.least_frequency),
    Column("most_frequency",    "",  "",                   "",                   "CPU_max_freq", "",                      TEXT,     texts.most_frequency),
    Column("governor",          "",  "",                   "",                   "Governor",     "",                      TEXT,     texts.governor),
    Column("gres_binding",      "",  "",                   "",                   "GresEnforceBind", "",                   TEXT,     texts.gres_binding),
    Column("mail_user",         "",  "",                   "",                   "MailUser",     "mail_user",             TEXT,     texts.mail_user),
    Column("mail_type",         "",  "",                   "",                   "MailType",     "mail_type",             TEXT,     texts.mail_types),
    Column("tasks_per_tres",    "",  "",                   "",                   "NtasksPerTRES", "tasks_per_tres",       TEXT,     res.tasks_per_tres),
    Column("oom_kill_step",     "",  "",                   "",                   "OOMKillStep",  "oom_kill_step",         TEXT,     option("oom-kill-step")),
    Column("kill_on_invalid_dep", "", "",                   "",                   "KillOnInvalidDependent", "",            TEXT,     of.kill_on_invalid_dep),
    Column("batch_host_alone",  "",  "",                   "",                   "BatchHost",    "batch_host",            HOST,     res.batch_host),
    Column("suspend_time",      "",  "",                   "",                   "SuspendTime",  "suspend_time",          TEXT,     always("None")),
    Column("pre_sus_time",      "",  "",                   "",                   "SecsPreSuspend", "pre_sus_time",        TEXT,     ZERO),
    Column("scheduler",         "",  "",                   "",                   "Scheduler",    "",                      TEXT,     always("Main")),
    Column("segment",           "",  "",                   "",                   "SegmentSize",  "",                      TEXT,     option("segment")),
)
# fmt: on

BY_KEY = {column.key: column for column in COLUMNS}
BY_LETTER = {column.letter: column for column in COLUMNS if column.letter}
BY_LONG = {column.long.lower(): column for column in COLUMNS if column.long}
_LETTERS = sorted(BY_LETTER, key=lambda letter: (letter.isupper(), letter))
EVERY = (*(f"{letter}|" for letter in _LETTERS[:-1]), _LETTERS[-1])
"""What `%all` shows: small letters, then capitals, with bars between."""
