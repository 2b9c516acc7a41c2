"""Columns that sacctmgr's lists have in common: every list takes all of them (22.05.8).

What a list knows nothing of stays empty in it. A word that is not whole stands for the first
column that begins so, where as many letters are there as that column asks for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from gateway.query.reports import Field, nothing

R = TypeVar("R")
Values = Mapping[str, Callable[[R], str]]
"""What a list shows, by headline."""


@dataclass(frozen=True, slots=True)
class Head:
    """A column: its headline, its width (negative: to the left), its names with their letters."""

    header: str
    width: int
    names: tuple[tuple[str, int], ...]


def _head(header: str, width: int, *names: str) -> Head:
    """Names are `Name/letters`, as many as are enough."""
    cut = (name.partition("/") for name in names)
    return Head(header, width, tuple((name, int(least)) for name, _, least in cut))


HEADS = (
    _head("Account", 10, "Accounts/3", "Acct/4"),
    _head("ActionRaw", 10, "ActionRaw/7"),
    _head("Action", 20, "Action/4"),
    _head("Actor", 10, "Actor/4"),
    _head("Admin", 9, "AdminLevel/2"),
    _head("% Allowed", 10, "Allowed/2"),
    _head("Allocated", 9, "Allocated/7"),
    _head("Assocs", 10, "Associations/2"),
    _head("Class", 9, "Classification/3"),
    _head("Cluster Nodes", 20, "ClusterNodes/8"),
    _head("Cluster", 10, "Clusters/2"),
    _head("Comment", 20, "Comment/3"),
    _head("ControlHost", 15, "ControlHost/8"),
    _head("ControlPort", 12, "ControlPort/8"),
    _head("Coord Accounts", 20, "Coordinators/2"),
    _head("# Allowed", 10, "CountAllowed/6"),
    _head("# Used", 10, "CountUsed/6"),
    _head("Count", 6, "Count/3"),
    _head("CPU Cnt", 7, "CPUCount/2"),
    _head("Def Acct", 10, "DefaultAccount/8"),
    _head("Def QOS", 9, "DefaultQOS/8"),
    _head("Def WCKey", 10, "DefaultWCKey/8"),
    _head("Descr", 20, "Description/3"),
    _head("Duration", 13, "Duration/2"),
    _head("TimeEnd", 19, "End/2", "TimeEnd/6"),
    _head("EventRaw", 8, "EventRaw/6"),
    _head("Event", 7, "Event/2"),
    _head("Extra", 20, "Extra/2"),
    _head("Share", 9, "FairShare/2", "Share/1"),
    _head("FedStateRaw", 11, "FedStateRaw/9"),
    _head("FedState", 12, "FedState/4"),
    _head("Features", 20, "Features/3"),
    _head("Federation", 10, "Federation/3"),
    _head("Flags", 20, "Flags/2"),
    _head("GraceTime", 10, "GraceTime/3"),
    _head("GrpCPUMins", 11, "GrpCPUMins/7"),
    _head("GrpCPURunMins", 13, "GrpCPURunMins/7"),
    _head("GrpCPUs", 8, "GrpCPUs/6"),
    _head("GrpJobsAccrue", 13, "GrpJobsAccrue/8"),
    _head("GrpJobs", 7, "GrpJobs/4"),
    _head("GrpMem", 7, "GrpMemory/4"),
    _head("GrpNodes", 8, "GrpNodes/4"),
    _head("GrpSubmit", 9, "GrpSubmitJobs/4"),
    _head("GrpTRESMins", 13, "GrpTRESMins/8"),
    _head("GrpTRESRunMins", 13, "GrpTRESRunMins/8"),
    _head("GrpTRES", 13, "GrpTRES/7"),
    _head("GrpWall", 11, "GrpWall/4"),
    _head("ID", 6, "ID/2"),
    _head("Info", 20, "Info/2"),
    _head("InstanceId", 20, "InstanceId/9"),
    _head("InstanceType", 20, "InstanceType/9"),
    _head("LastConsumed", 12, "LastConsumed/2"),
    _head("LFT", 6, "LFT/1"),
    _head("LimitFactor", 11, "LimitFactor/6"),
    _head("Lineage", -20, "Lineage/4"),
    _head("MaxCPUMins", 11, "MaxCPUMinsPerJob/7"),
    _head("MaxCPURunMinsPU", 15, "MaxCPURunMinsPerUser/7", "MaxCPURunMinsPU/7"),
    _head("MaxCPUsPU", 9, "MaxCPUsPU/9", "MaxCPUsPerUser/11"),
    _head("MaxCPUs", 8, "MaxCPUsPerJob/7"),
    _head("MaxJobsAccruePA", 15, "MaxJobsAccruePA/15", "MaxJobsAccruePerAccount/17",
          "MaxJobsAccruePerAcct/17"),
    _head("MaxJobsAccruePU", 15, "MaxJobsAccruePU/15", "MaxJobsAccruePerUser/17"),
    _head("MaxJobsAccrue", 13, "MaxJobsAccrue/8"),
    _head("MaxJobsPA", 9, "MaxJobsPA/9", "MaxJobsPerAccount/11", "MaxJobsPerAcct/11"),
    _head("MaxJobsPU", 9, "MaxJobsPU/9", "MaxJobsPerUser/11"),
    _head("MaxJobs", 7, "MaxJobs/4"),
    _head("MaxNodesPU", 10, "MaxNodesPU/10", "MaxNodesPerUser/12"),
    _head("MaxNodes", 8, "MaxNodesPerJob/4"),
    _head("MaxSubmitPA", 11, "MaxSubmitJobsPA/15", "MaxSubmitJobsPerAccount/17",
          "MaxSubmitJobsPerAcct/17", "MaxSubmitPA/11"),
    _head("MaxSubmitPU", 11, "MaxSubmitJobsPU/14", "MaxSubmitJobsPerUser/14", "MaxSubmitPU/10"),
    _head("MaxSubmit", 9, "MaxSubmitJobs/4"),
    _head("MaxTRESMins", 13, "MaxTRESMinsPerJob/8"),
    _head("MaxTRESPA", 13, "MaxTRESPA/9", "MaxTRESPerAccount/11", "MaxTRESPerAcct/11"),
    _head("MaxTRESPU", 13, "MaxTRESPU/9", "MaxTRESPerUser/11"),
    _head("MaxTRESPerNode", 14, "MaxTRESPerNode/11"),
    _head("MaxTRESRunMinsPA", 15, "MaxTRESRunMinsPA/15", "MaxTRESRunMinsPerAccount/17",
          "MaxTRESRunMinsPerAcct/17"),
    _head("MaxTRESRunMinsPU", 15, "MaxTRESRunMinsPU/8", "MaxTRESRunMinsPerUser/8"),
    _head("MaxTRES", 13, "MaxTRES/7", "MaxTRESPerJob/11"),
    _head("MaxWall", 11, "MaxWallDurationPerJob/4"),
    _head("MinCPUs", 8, "MinCPUsPerJob/7"),
    _head("MinPrioThres", 12, "MinPrioThreshold/4"),
    _head("MinTRES", 13, "MinTRESPerJob/7"),
    _head("Name", 10, "Name/2"),
    _head("NodeCount", 9, "NodeCount/5"),
    _head("NodeInx", 9, "NodeInx/5"),
    _head("NodeName", -15, "NodeNames/5"),
    _head("Org", 20, "Organization/1"),
    _head("ParentID", 8, "ParentID/7"),
    _head("ParentName", 10, "ParentName/7"),
    _head("Partition", 10, "Partition/4"),
    _head("PluginIDSelect", 14, "PluginIDSelect/2"),
    _head("PreemptExemptTime", 19, "PreemptExemptTime/8"),
    _head("PreemptMode", 11, "PreemptMode/8"),
    _head("Preempt", 10, "Preempt/7"),
    _head("Priority", 10, "Priority/3"),
    _head("Problem", 40, "Problem/1"),
    _head("QOS_RAW", 10, "QOSRAWLevel/4"),
    _head("QOS", 20, "QOSLevel/3"),
    _head("Reason", 30, "Reason/1"),
    _head("RGT", 6, "RGT/2"),
    _head("RPC", 5, "RPC/2"),
    _head("ServerType", 10, "ServerType/10"),
    _head("Server", 10, "Server/3"),
    _head("StateRaw", 8, "StateRaw/6"),
    _head("State", 6, "State/2"),
    _head("TimeStart", 19, "Start/4", "TimeStart/8"),
    _head("TimeSubmit", 19, "Submit/2", "TimeSubmit/6"),
    _head("TimeEligible", 19, "TimeEligible/6"),
    _head("Time", 19, "TimeStamp/2"),
    _head("TRES", 20, "TRES/2"),
    _head("Type", 8, "Type/2"),
    _head("UnusedWall", 10, "UnusedWall/2"),
    _head("UsageFactor", 11, "UsageFactor/6"),
    _head("UsageThres", 10, "UsageThreshold/6"),
    _head("User", 10, "User/1"),
    _head("WCKeys", 20, "WCKeys/2"),
    _head("Where", 20, "Where/2"),
)  # fmt: skip


def columns(values: "Values[R]", *widths: tuple[str, int]) -> tuple[Field[R], ...]:
    """All of them with the values of one list; `widths` of headlines that are others there."""
    wide: dict[str, int] = dict(widths)
    return tuple(
        Field(
            name,
            head.header,
            wide.get(head.header, head.width),
            values.get(head.header, nothing),
            least=least,
        )
        for head in HEADS
        for name, least in head.names
    )
