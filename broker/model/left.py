"""What a requeue leaves behind: the record of the attempt before. Pure."""

from dataclasses import replace

from broker.model import events as ev
from broker.model.job import Job, JobState

PREEMPTED, TAKEN = "preempted", "taken_back"
"""Causes of an end by which a job is pushed out: by another job, by who sells the machine."""


def left_behind(job: Job, event: ev.JobEvent) -> Job:
    """The record of an attempt that a requeue ended, unless it had ended before.

    One that was pushed out is PREEMPTED there, as Slurm's slurmctld writes it.
    """
    at = event.at
    if isinstance(event, ev.Requeued) and event.kill_cause in {PREEMPTED, TAKEN}:
        job = replace(job, state=JobState.PREEMPTED)
    if job.ended is not None:
        return job
    steps = (s if s.state.final else replace(s, ended=at) for s in job.steps)
    return replace(job, ended=at, steps=tuple(steps))
