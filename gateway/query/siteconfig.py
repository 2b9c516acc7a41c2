"""`scontrol show config`: Slurm's parameters, with what holds here in their places (25.11.7)."""

from collections.abc import Mapping

from broker.world import Snapshot
from gateway.config.accounts import PRIVATE_KINDS, SchedulingSettings
from gateway.config.settings import Config
from gateway.query.context import Context
from gateway.query.moments import show_moment
from sbatch_shim.grammar.values import show_long

KEY_TEXT = """
AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost
AccountingStorageExternalHost AccountingStorageParameters AccountingStoragePort
AccountingStorageTRES AccountingStorageType AccountingStoreFlags AcctGatherEnergyType
AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
AllowSpecResourcesUsage AuthAltTypes AuthAltParameters AuthInfo AuthType BatchStartTimeout
BcastExclude BcastParameters BOOT_TIME BurstBufferType CertgenParameters CertgenType
CertmgrParameters CertmgrType CliFilterParameters CliFilterPlugins ClusterName
CommunicationParameters CompleteWait CpuFreqDef CpuFreqGovernors CredType DataParserParameters
DebugFlags DefMemPerNode DependencyParameters DisableRootJobs EioTimeout EnforcePartLimits
Epilog[0] EpilogMsgTime FairShareDampeningFactor FederationParameters FirstJobId GresTypes
GpuFreqDef
GroupUpdateForce GroupUpdateTime HASH_VAL HashPlugin HealthCheckInterval HealthCheckNodeState
HealthCheckProgram HttpParserType InactiveLimit InteractiveStepOptions JobAcctGatherFrequency
JobAcctGatherType JobAcctGatherParams JobCompHost JobCompLoc JobCompParams JobCompPass
JobCompPort JobCompType JobCompUser JobDefaults JobFileAppend JobRequeue JobSubmitPlugins
KillOnBadExit KillWait LaunchParameters Licenses LogTimeFormat MailDomain MailProg MaxArraySize
MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerNode MaxNodeCount MaxStepCount
MaxTasksPerNode MCSPlugin MCSParameters MessageTimeout MetricsType MinJobAge MpiDefault
MpiParams MULTIPLE_SLURMD NamespaceType NEXT_JOB_ID NodeFeaturesPlugins OverTimeLimit PluginDir
PlugStackConfig PreemptMode PreemptParameters PreemptType PreemptExemptTime PrEpParameters
PrEpPlugins PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin
PriorityDecayHalfLife PriorityCalcPeriod PriorityFavorSmall PriorityFlags PriorityMaxAge
PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc
PriorityWeightFairShare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
PriorityWeightTRES PrivateData ProctrackType Prolog[0] PrologEpilogTimeout PrologFlags
PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram
ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate
ResumeTimeout ResvEpilog ResvOverRun ResvProlog ReturnToService SchedulerParameters
SchedulerTimeSlice SchedulerType ScronParameters SelectType SelectTypeParameters SlurmUser
SlurmctldAddr SlurmctldDebug SlurmctldHost[0] SlurmctldLogFile SlurmctldPort
SlurmctldSyslogDebug SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldTimeout
SlurmctldParameters SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort
SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel
SlurmctldPidFile SLURM_CONF SLURM_VERSION SrunEpilog SrunPortRange SrunProlog StateSaveLocation
SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime
SuspendTimeout SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam TaskProlog
TCPTimeout TLSParameters TLSType TmpFS TopologyParam TopologyPlugin TrackWCKey TreeWidth UsePam
UnkillableStepProgram UnkillableStepTimeout UrlParserType VSizeFactor WaitTime X11Parameters
"""
KEYS = tuple(KEY_TEXT.split())
"""Every parameter in Slurm's order; one that is not said below is `(null)`."""

ONLY_WHERE_SET = frozenset({"Epilog[0]", "Prolog[0]"})
"""A line for each program there is (25.11), none where there is none."""

USUAL = {
    "AccountingStorageHost": "127.0.0.1",
    "AccountingStorageTRES": "cpu,mem,energy,node,billing,fs/disk,vmem,pages",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStoreFlags": "job_comment,job_env,job_script",
    "AcctGatherNodeFreq": "0 sec",
    "AllowSpecResourcesUsage": "no",
    "BatchStartTimeout": "10 sec",
    "CompleteWait": "0 sec",
    "CpuFreqDef": "Unknown",
    "CpuFreqGovernors": "OnDemand,Performance,UserSpace",
    "DefMemPerNode": "UNLIMITED",
    "DisableRootJobs": "no",
    "EioTimeout": "60",
    "EnforcePartLimits": "NO",
    "EpilogMsgTime": "2000 usec",
    "FairShareDampeningFactor": "1",
    "GresTypes": "gpu",
    "GroupUpdateForce": "1",
    "GroupUpdateTime": "600 sec",
    "HealthCheckInterval": "0 sec",
    "HealthCheckNodeState": "ANY",
    "InactiveLimit": "0 sec",
    "InteractiveStepOptions": "--interactive --preserve-env --pty $SHELL",
    "JobAcctGatherFrequency": "task=5",
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobCompHost": "localhost",
    "JobCompPort": "0",
    "JobCompUser": "root",
    "JobFileAppend": "0",
    "KillOnBadExit": "0",
    "LogTimeFormat": "iso8601_ms",
    "MailProg": "/bin/mail",
    "MaxBatchRequeue": "5",
    "MaxDBDMsgs": "0",
    "MaxJobId": "67043328",
    "MaxMemPerNode": "UNLIMITED",
    "MaxNodeCount": "0",
    "MaxStepCount": "40000",
    "MaxTasksPerNode": "512",
    "MessageTimeout": "10 sec",
    "MULTIPLE_SLURMD": "1",
    "OverTimeLimit": "0 min",
    "PreemptMode": "OFF",
    "PreemptExemptTime": "00:00:00",
    "PriorityDecayHalfLife": "7-00:00:00",
    "PriorityCalcPeriod": "00:05:00",
    "PriorityFavorSmall": "no",
    "PriorityMaxAge": "7-00:00:00",
    "PriorityType": "priority/multifactor",
    "PriorityUsageResetPeriod": "NONE",
    "PriorityWeightAge": "0",
    "PriorityWeightAssoc": "0",
    "PriorityWeightFairShare": "0",
    "PriorityWeightJobSize": "0",
    "PriorityWeightPartition": "0",
    "PriorityWeightQOS": "0",
    "ProctrackType": "proctrack/linuxproc",
    "PrologEpilogTimeout": "65534",
    "PropagatePrioProcess": "0",
    "PropagateResourceLimits": "ALL",
    "ResumeRate": "300 nodes/min",
    "ResumeTimeout": "900 sec",
    "ResvOverRun": "0 min",
    "ReturnToService": "2",
    "SchedulerParameters": "bf_interval=5,bf_max_job_test=1000",
    "SchedulerTimeSlice": "30 sec",
    "SchedulerType": "sched/backfill",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CORE_MEMORY",
    "SlurmctldTimeout": "120 sec",
    "SlurmdTimeout": "300 sec",
    "SrunPortRange": "0-0",
    "SuspendRate": "60 nodes/min",
    "SuspendTime": "300 sec",
    "SuspendTimeout": "30 sec",
    "TCPTimeout": "2 sec",
    "TmpFS": "/tmp",
    "TrackWCKey": "No",
    "TreeWidth": "16",
    "UsePam": "No",
    "UnkillableStepTimeout": "60 sec",
    "VSizeFactor": "0 percent",
    "WaitTime": "0 sec",
    "AccountingStoragePort": "0",
}
"""What holds unless the site's configuration says otherwise."""


def config_text(
    snap: Snapshot, ctx: Context, *, host: str, settings: Mapping[str, str] | None = None
) -> str:
    """The whole answer; `settings` lays the configuration's own lines over the usual ones."""
    values = {**USUAL, **(settings or {}), **_of_site(snap, ctx, host)}
    said = [key for key in KEYS if key in values or key not in ONLY_WHERE_SET]
    lines = [f"{key:<23} = {values.get(key, '(null)')}" for key in said]
    head = f"Configuration data as of {show_moment(ctx.now, ctx)}"
    return "\n".join([head, *lines, "", f"Slurmctld(primary) at {host} is UP", ""])


def _of_site(snap: Snapshot, ctx: Context, host: str) -> dict[str, str]:
    site = snap.site
    return {
        "AccountingStorageEnforce": ",".join(sorted(site.book.enforce)) or "none",
        "BOOT_TIME": show_moment(snap.started_at, ctx),
        "ClusterName": site.cluster,
        "FirstJobId": str(site.first_job_id),
        "JobRequeue": str(int(site.job_requeue)),
        "KillWait": f"{site.kill_wait} sec",
        "MaxArraySize": str(site.max_array_size),
        "MaxJobCount": str(site.max_job_count),
        "MinJobAge": f"{site.min_job_age} sec",
        "NEXT_JOB_ID": str(snap.next_job_id),
        "PriorityFlags": ",".join(site.priority_flags),
        "PrivateData": ",".join(kind for kind in PRIVATE_KINDS if kind in site.private) or "none",
        "SLURM_VERSION": site.version,
        "SlurmUser": f"{ctx.user_name(site.service_uid or 0)}({site.service_uid or 0})",
        "SlurmctldHost[0]": f"{host}(127.0.0.1)",
        "SlurmdUser": "root(0)",
    }


def _scheduler(settings: SchedulingSettings) -> str:
    most = settings.max_job_test
    return f"bf_interval={settings.interval}" + (f",bf_max_job_test={most}" if most else "")


def settings_lines(config: Config) -> dict[str, str]:
    """The parameters that only the configuration knows."""
    weights, priority = config.priority.weights, config.priority
    hooks = {"Epilog[0]": config.epilog, "Prolog[0]": config.prolog}
    return {
        **{key: program for key, program in hooks.items() if program},
        "AccountingStorageTRES": ",".join(config.accounting.tres),
        "AccountingStoreFlags": ",".join(sorted(config.accounting.store_flags)),
        "CompleteWait": f"{config.complete_wait} sec",
        "EnforcePartLimits": config.enforce_part_limits,
        "InactiveLimit": f"{config.inactive_limit} sec",
        "JobAcctGatherFrequency": f"task={config.accounting.gather_seconds}",
        "KillOnBadExit": str(int(config.kill_on_bad_exit)),
        "MailDomain": config.mail_domain or "(null)",
        "MailProg": config.mail_prog,
        "MaxJobId": str(config.max_job_id),
        "MaxStepCount": str(config.max_step_count),
        "MaxTasksPerNode": str(config.max_tasks_per_node),
        "OverTimeLimit": f"{config.over_time_limit} min",
        "PriorityCalcPeriod": show_long(priority.calc_period),
        "PriorityDecayHalfLife": show_long(priority.decay_half_life),
        "PriorityFavorSmall": "yes" if priority.favor_small else "no",
        "PriorityMaxAge": show_long(priority.max_age),
        "PriorityType": f"priority/{priority.type}",
        "PriorityWeightAge": str(weights.age),
        "PriorityWeightAssoc": str(weights.assoc),
        "PriorityWeightFairShare": str(weights.fairshare),
        "PriorityWeightJobSize": str(weights.job_size),
        "PriorityWeightPartition": str(weights.partition),
        "PriorityWeightQOS": str(weights.qos),
        "PriorityWeightTRES": weights.tres or "(null)",
        "PropagateResourceLimits": config.propagate_resource_limits,
        "SchedulerParameters": _scheduler(config.scheduling),
        "UnkillableStepTimeout": f"{config.unkillable_step_timeout} sec",
        "WaitTime": f"{config.wait_time} sec",
    }
