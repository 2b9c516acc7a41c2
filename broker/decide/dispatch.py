"""`decide`: a message in the inbox to facts and an answer."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, get_args

from broker.decide import commands as done_by_command
from broker.decide import reports as seen_in_report
from broker.decide import stepping
from broker.decide.booking import decide_book, decide_entries
from broker.decide.forgotten import decide_journal_lost
from broker.decide.money import decide_repriced
from broker.decide.partitioning import decide_partition, decide_reconfigured
from broker.decide.protecting import decide_again
from broker.decide.recovery import judged
from broker.decide.reserving import decide_drop, decide_reservation
from broker.decide.rules import NOTHING, Decision, KeeperNow, QuoteFor
from broker.decide.stopping import decide_power, decide_seen
from broker.decide.submit import decide_submit, decide_test
from broker.decide.telling import decide_kept, decide_notify, decide_told, decide_trouble
from broker.decide.top import decide_top
from broker.decide.update import decide_update
from broker.decide.volumes import decide_volume, decide_volume_seen
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.boots import BuyAgain
from broker.model.errors import SpzError, Unforeseen
from broker.model.partition import SetPartition
from broker.model.recovery import ArtifactsDone, CheckpointDone
from broker.model.reservation import DropReservation, SetReservation
from broker.model.stopping import PowerSeen, StartCluster, StopCluster
from broker.model.volume import ApplyVolume, DeleteVolume, VolumeSeen
from broker.world import World

OfTheSite = (
    cmd.SetNode
    | BuyAgain
    | cmd.ChangeBook
    | cmd.PostEntries
    | SetReservation
    | DropReservation
    | ApplyVolume
    | DeleteVolume
    | VolumeSeen
    | SetPartition
    | cmd.Reconfigure
    | cmd.TakeFigures
)
"""What is asked, or seen, of no job."""
OfJobs = (
    cmd.Cancel
    | cmd.CancelAll
    | cmd.Signal
    | cmd.Notify
    | cmd.ToTop
    | cmd.Suspend
    | cmd.Requeue
    | cmd.AddStep
    | cmd.UpdateStep
    | cmd.CancelStep
    | cmd.FinishAllocation
)
"""What is asked of jobs that exist, or of their steps, and needs no more than the world."""
Decide = Callable[[World, Any, int], Decision]

OF_THE_SITE: Mapping[type, Decide] = {
    cmd.SetNode: done_by_command.decide_node,
    BuyAgain: decide_again,
    cmd.ChangeBook: decide_book,
    cmd.PostEntries: lambda world, asked, _: decide_entries(world, asked),
    SetReservation: decide_reservation,
    DropReservation: decide_drop,
    ApplyVolume: decide_volume,
    DeleteVolume: decide_volume,
    **dict.fromkeys(get_args(VolumeSeen), decide_volume_seen),
    SetPartition: decide_partition,
    cmd.Reconfigure: lambda world, _, now: decide_reconfigured(world, now),
    cmd.TakeFigures: lambda *_: NOTHING,
}
OF_JOBS: Mapping[type, Decide] = {
    cmd.Cancel: done_by_command.decide_cancel,
    cmd.CancelAll: done_by_command.decide_cancel_all,
    cmd.Signal: done_by_command.decide_signal,
    cmd.Notify: decide_notify,
    cmd.ToTop: decide_top,
    cmd.Suspend: done_by_command.decide_suspend,
    cmd.Requeue: done_by_command.decide_requeue,
    cmd.AddStep: stepping.decide_add_step,
    cmd.UpdateStep: stepping.decide_step_limit,
    cmd.CancelStep: stepping.decide_cancel_step,
    cmd.FinishAllocation: stepping.decide_finish,
}
OF_REPORTS: Mapping[type, Decide] = {
    rep.Launched: seen_in_report.decide_launched,
    rep.NotLaunched: seen_in_report.decide_not_launched,
    rep.Booted: seen_in_report.decide_booted,
    rep.NotBooted: seen_in_report.decide_not_booted,
    rep.Terminated: seen_in_report.decide_terminated,
    rep.Vanished: seen_in_report.decide_vanished,
    rep.Repriced: decide_repriced,
    rep.StepRefused: seen_in_report.decide_step_refused,
    rep.SignalDone: seen_in_report.decide_signal_done,
    rep.NodeTrouble: decide_trouble,
    rep.JournalLost: decide_journal_lost,
    **dict.fromkeys((rep.NoticeDone, rep.LimitDone), decide_told),
    **dict.fromkeys((CheckpointDone, ArtifactsDone), decide_kept),
    **dict.fromkeys(get_args(PowerSeen), decide_seen),
    **dict.fromkeys((rep.StepTaken, rep.Tick, rep.Journal), lambda *_: NOTHING),
}


def decide(
    world: World,
    message: cmd.Order | rep.Report,
    now: int,
    *,
    quote: QuoteFor,
    keeper: KeeperNow,
) -> Decision:
    """What follows from the message. Raises SpzError where it is refused.

    Deciding changes nothing: what nobody foresaw refuses this message alone, as Unforeseen.
    """
    with _foreseen(message):
        if isinstance(message, OfJobs):
            return OF_JOBS[type(message)](world, message, now)
        if isinstance(message, OfTheSite):
            return OF_THE_SITE[type(message)](world, message, now)
        match message:
            case cmd.Submit():
                return decide_submit(world, message, now, quote=quote)
            case cmd.TestSubmit():
                return decide_test(world, message, now, quote=quote)
            case cmd.Update():
                return decide_update(world, message, now, quote=quote)
            case cmd.SetHold():
                return done_by_command.decide_hold(world, message, now, quote=quote, keeper=keeper)
            case StopCluster() | StartCluster():
                return decide_power(world, message, now, keeper=keeper)
            case _:
                seen = OF_REPORTS[type(message)](world, message, now)
                return replace(seen, facts=judged(world, seen.facts, now))


@contextmanager
def _foreseen(message: object) -> Iterator[None]:
    try:
        yield
    except SpzError:
        raise
    except Exception as error:  # border: who asks for what we stumble over ends nobody's service
        asked = type(message).__name__
        raise Unforeseen(f"internal error: {asked}", hint="the service's log has it") from error
