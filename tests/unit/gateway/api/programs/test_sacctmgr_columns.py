"""Every column that a list of sacctmgr can be asked for, by its names and their short forms."""

from collections.abc import Iterator

import pytest

from gateway.api.programs.sacctmgr_show import ENTITIES
from tests.unit.gateway.api.programs.test_sacctmgr import said
from tests.unit.gateway.query.desk import text

RECORDED = """
Account = 10: Account/3 Acct/3
Action = 20: Action/4
ActionRaw = 10: ActionRaw/7
Actor = 10: Actor/4
Admin = 9: AdminLevel/2
% Allowed = 10: Allowed/2
Assocs = 10: Associations/2
Class = 9: Classification/3
Cluster Nodes = 20: ClusterNodes/8
Cluster = 10: Clusters/2
ControlHost = 15: ControlHost/8
ControlPort = 12: ControlPort/8
Coord Accounts = 20: Coordinators/2
Count = 6: Count/3
# Allowed = 10: CountAllowed/6
# Used = 10: CountUsed/6
CPU Cnt = 7: CPUCount/2
Def Acct = 10: DefaultAccount/8
Def QOS = 9: DefaultQOS/8
Def WCKey = 10: DefaultWCKey/8
Descr = 20: Description/3
Duration = 13: Duration/2
TimeEnd = 19: End/2 TimeEnd/6
Event = 7: Event/2
EventRaw = 8: EventRaw/6
Share = 9: FairShare/2 Share/1
Features = 20: Features/3
Federation = 10: Federation/3
FedState = 12: FedState/4
FedStateRaw = 11: FedStateRaw/9
Flags = 20: Flags/2
GraceTime = 10: GraceTime/3
GrpCPUMins = 11: GrpCPUMins/7
GrpCPURunMins = 13: GrpCPURunMins/7
GrpCPUs = 8: GrpCPUs/6
GrpJobs = 7: GrpJobs/4
GrpJobsAccrue = 13: GrpJobsAccrue/8
GrpMem = 7: GrpMemory/4
GrpNodes = 8: GrpNodes/4
GrpSubmit = 9: GrpSubmitJobs/4
GrpTRES = 13: GrpTRES/7
GrpTRESMins = 13: GrpTRESMins/8
GrpTRESRunMins = 13: GrpTRESRunMins/8
GrpWall = 11: GrpWall/4
ID = 6: ID/2
Info = 20: Info/2
LFT = 6: LFT/1
LimitFactor = 11: LimitFactor/6
MaxCPUMins = 11: MaxCPUMinsPerJob/7
MaxCPURunMinsPU = 15: MaxCPURunMinsPU/7 MaxCPURunMinsPerUser/7
MaxCPUs = 8: MaxCPUsPerJob/7
MaxCPUsPU = 9: MaxCPUsPU/9 MaxCPUsPerUser/11
MaxJobs = 7: MaxJobs/4
MaxJobsAccrue = 13: MaxJobsAccrue/8
MaxJobsAccruePA = 15: MaxJobsAccruePA/15 MaxJobsAccruePerAccount/17 MaxJobsAccruePerAcct/17
MaxJobsAccruePU = 15: MaxJobsAccruePU/15 MaxJobsAccruePerUser/17
MaxJobsPA = 9: MaxJobsPA/9 MaxJobsPerAccount/11 MaxJobsPerAcct/11
MaxJobsPU = 9: MaxJobsPU/9 MaxJobsPerUser/11
MaxNodes = 8: MaxNodesPerJob/4
MaxNodesPU = 10: MaxNodesPU/10 MaxNodesPerUser/12
MaxSubmit = 9: MaxSubmitJobs/4
MaxSubmitPA = 11: MaxSubmitJobsPA/15 MaxSubmitJobsPerAccount/17 MaxSubmitJobsPerAcct/17
MaxSubmitPA = 11: MaxSubmitPA/11
MaxSubmitPU = 11: MaxSubmitJobsPU/14 MaxSubmitJobsPerUser/14 MaxSubmitPU/10
MaxTRES = 13: MaxTRES/7 MaxTRESPerJob/11
MaxTRESMins = 13: MaxTRESMinsPerJob/8
MaxTRESPA = 13: MaxTRESPA/9 MaxTRESPerAccount/11 MaxTRESPerAcct/11
MaxTRESPerNode = 14: MaxTRESPerNode/11
MaxTRESPU = 13: MaxTRESPU/9 MaxTRESPerUser/11
MaxTRESRunMinsPA = 15: MaxTRESRunMinsPA/15 MaxTRESRunMinsPerAccount/17 MaxTRESRunMinsPerAcct/17
MaxTRESRunMinsPU = 15: MaxTRESRunMinsPU/8 MaxTRESRunMinsPerUser/8
MaxWall = 11: MaxWallDurationPerJob/4
MinCPUs = 8: MinCPUsPerJob/7
MinPrioThres = 12: MinPrioThreshold/4
MinTRES = 13: MinTRESPerJob/7
Name = 10: NAME/2
NodeCount = 9: NodeCount/5
NodeInx = 9: NodeInx/5
NodeName = 15: NodeNames/5
Org = 20: Organization/1
ParentID = 8: ParentID/7
ParentName = 10: ParentName/7
Partition = 10: Partition/4
PluginIDSelect = 14: PluginIDSelect/2
Preempt = 10: Preempt/7
PreemptExemptTime = 19: PreemptExemptTime/8
PreemptMode = 11: PreemptMode/8
Priority = 10: Priority/3
Problem = 40: Problem/1
QOS = 20: QOSLevel/3
QOS_RAW = 10: QOSRAWLevel/4
Reason = 30: Reason/1
RGT = 6: RGT/2
RPC = 5: RPC/2
Server = 10: Server/3
ServerType = 10: ServerType/10
TimeStart = 19: Start/4 TimeStart/8
State = 6: State/2
StateRaw = 8: StateRaw/6
TimeSubmit = 19: Submit/2 TimeSubmit/6
TimeEligible = 19: TimeEligible/6
Time = 19: TimeStamp/2
TRES = 20: TRES/2
Type = 8: Type/2
UnusedWall = 10: UnusedWall/2
UsageFactor = 11: UsageFactor/6
UsageThres = 10: UsageThreshold/6
User = 10: User/1
WCKeys = 20: WCKeys/2
Where = 20: WHERE/2
"""
"""Headline, width, names with as many letters as are enough: what 22.05.8 answered to each."""
LATER = """
Allocated = 9: Allocated/7
Comment = 20: Comment/3
Lineage = 20: Lineage/4
InstanceId = 20: InstanceId/9
InstanceType = 20: InstanceType/9
Extra = 20: Extra/2
LastConsumed = 12: LastConsumed/2
"""
"""What there is since."""
WITHOUT_COLUMNS = {"configuration", "runawayjob", "stat"}
LISTS = [one.name for one in ENTITIES if one.name not in WITHOUT_COLUMNS]


def columns() -> Iterator[tuple[str, int, list[str]]]:
    for line in (RECORDED + LATER).strip().splitlines():
        if line:
            header, _, rest = line.partition(" = ")
            width, _, names = rest.partition(": ")
            cut = (name.split("/") for name in names.split())
            yield header, int(width), [way for name, n in cut for way in (name, name[: int(n)])]


@pytest.mark.parametrize("entity", LISTS)
def test_every_column_has_slurms_headline_and_width_in_every_list(entity: str) -> None:
    found, wanted = {}, {}
    for header, width, names in columns():
        of_keys = (entity, header) == ("wckey", "WCKeys")
        for name in names:
            wanted[name] = ("WCKey", 10) if of_keys else (header[:width], width)
            answer = said("sacctmgr", "show", entity, f"format={name}", uid=0)
            head, _, rest = text(answer.out).partition("\n")
            found[name] = (head.strip(), rest.partition(" ")[0].count("-"))
    assert found == wanted


@pytest.mark.parametrize("entity", LISTS)
def test_a_column_that_no_list_has_is_refused_by_its_name(entity: str) -> None:
    answer = said("sacctmgr", "show", entity, "format=name,nosuch", uid=0)
    assert (answer.out, answer.err, answer.code) == ("", "Unknown field 'nosuch'\n", 1)
