"""Draws commands about jobs that wait: what is changed of them, cancelled, and listed."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

Words = tuple[str, ...]
Table = Mapping[str, Words]

# fmt: off
SCENE: Table = {
    "@one": ("-H", "-J", "one", "-n2", "--comment=first"),
    "@two": ("-H", "-J", "two", "-a", "1-3%2", "-t", "2:00:00"),
    "@three": ("--begin=now+1hour", "-J", "three", "-p", "debug", "-N2", "--mem=100"),
    "@four": ("-H", "-J", "four", "-A", "chem", "--gres=gpu:1"),
}
"""Jobs by the name that stands for their ids."""
CHANGES: Table = {
    "Account": ("chem", "physics", "nosuch", ""), "AdminComment": ("x",),
    "ArrayTaskThrottle": ("1", "0"), "Comment": ("new", "", "a b"), "Contiguous": ("yes", "x"),
    "CoreSpec": ("1",), "Deadline": ("2035-01-02", "x"), "DelayBoot": ("5", "x", "1:30"),
    "Dependency": ("afterany:@one", "afterok:@two", "", "x", "afterok:@one:@one", "after:@three"),
    "EligibleTime": ("now+2hours",), "EndTime": ("now+1hour",),
    "ExcNodeList": ("ec2-1", "nosuch", ""), "Features": ("spot", "nosuch", "", "spot&g5"),
    "Gres": ("gpu:1", "x"), "JobName": ("n", "", "a b"), "Licenses": ("nosuch:1",),
    "MailType": ("END", "nosuch", ""), "MailUser": ("a@b",), "MinCPUsNode": ("1", "3", "x"),
    "MinMemoryCPU": ("100", "x"), "MinMemoryNode": ("100", "x", "0"),
    "MinTmpDiskNode": ("0", "x"), "Name": ("m",), "Nice": ("5", "0", "-5", "99999999999"),
    "Nosuch": ("1",), "NumCPUs": ("4", "0"), "NumNodes": ("1", "2", "1-2", "2-1", "0"),
    "NumTasks": ("0",), "OverSubscribe": ("yes", "x"), "Partition": ("nosuch", "", "rootonly"),
    "Priority": ("5", "0", "x"), "QOS": ("normal", "high", "nosuch", ""),
    "ReqNodeList": ("ec2-1", "nosuch", "", "ec2-[1-2]"), "ReqSockets": ("1", "x"),
    "Requeue": ("0", "1", "x"), "ReservationName": ("nosuch", ""),
    "StartTime": ("now+1hour", "now", "x", "", "2035-01-02"), "StdIn": ("/dev/null",),
    "StdOut": ("out", "/tmp/o-%j"), "Switches": ("x",),
    "TimeLimit": ("10", "1:00:00", "1-0", "x", "UNLIMITED", "+5", "-5", "", "8-0"),
    "TimeMin": ("5", "x", "9-0"), "UserID": ("bob",), "WCKey": ("k",), "WorkDir": ("/tmp",),
}
"""Of `scontrol update`; not what no node could give, which is refused here and waits there."""
FILTERS: Table = {
    "-A": ("chem", "physics", "nosuch"), "-n": ("one", "two", "nosuch"),
    "-p": ("debug", "ec2", "nosuch"), "-q": ("normal", "high", "nosuch"),
    "-t": ("PENDING", "RUNNING", "PD", "SUSPENDED", "x", "pending"),
    "-u": ("alice", "bob", "nosuch"), "-w": ("ec2-1", "nosuch"), "-s": ("TERM", "9", "nosuch"),
    "--wckey": ("k",), "--me": (), "-b": (), "-f": (), "-Q": (), "-R": ("nosuch",),
}
TARGETS = ("@one", "@two", "@two_1", "@two_[1-2]", "@three", "@four", "1", "x", "@two_9")
LISTED: Table = {
    "-t": ("PD", "R,PD", "pd", "R"), "-p": ("debug", "ec2", "nosuch", "debug,ec2", ""),
    "-n": ("one", "one,two", "nosuch"), "-A": ("chem", "nosuch", "chem,physics"),
    "-q": ("normal", "nosuch"), "-u": ("alice", "bob", "nosuch", "2001", "alice,bob", "99999"),
    "-j": ("@one", "@one,@two", "@two_2", "x", "1", "@two,1", "@two_[1-2]"),
    "-w": ("ec2-1", "nosuch"), "-R": ("nosuch",), "-L": ("nosuch",),
    "-S": ("i", "-i", "P,i", "j,-i", "x", "-p,i", "t,-i", "u,a,i", "M,i", "-D,i"),
    "-o": ("%i %j", "%.18i %.9P %.8j", "%i|%t|%T|%r|%R", "%10i.%-5j|", "%A %F %K %a %q", "%z %X",
           "%D %C %m %b %c", "%u %U %g %G", "%S %e %V %l %L", "%k|%E|%n|%x|%f|%N|%o|%Z", "abc",
           "%i%%", "%5.3i", "%H %I %J %h %v %w %W %d %B %y"),
    "-O": ("jobid,name", "jobarrayid:20,state", "JobID:.10,Name:5", "nosuch", "username,account",
           "numnodes,numcpus,numtasks", "jobid:-5", "arraytaskid,arrayjobid", "timelimit,timeleft",
           "reason:30,nodelist", "dependency:40,comment:9", "jobid: 5"),
    "-h": (), "-r": (), "-a": (), "--me": (), "--noconvert": (), "--start": (), "--local": (),
}
PAST: Table = {
    "-o": ("jobid,jobname,state", "JobID%20,User,Account", "jobid%-10,partition", "nosuch",
           "jobidraw,qos,timelimit", "nnodes,exitcode,derivedexitcode", "comment,wckey", "jobid,"),
    "-s": ("PD", "CD", "x", "PENDING,R"), "-u": ("alice", "bob", "nosuch"),
    "-A": ("chem", "nosuch"), "-r": ("ec2", "nosuch"), "-q": ("normal",), "-N": ("ec2-1",),
    "--name": ("one", "nosuch"), "-S": ("now-1hour", "x", "00:00"), "-E": ("now", "x"),
    "-X": (), "-n": (), "-P": (), "-p": (), "-a": (), "-D": (),
    "--delimiter": ("@", "ab", ""), "--units": ("M", "x"), "-i": ("2-3", "x"), "--noconvert": (),
}
PLAIN = "-ojobid,jobname,partition,state"
"""Columns where none are drawn: of a job that never started 22.05 counts cpus in the usual ones."""
NAMED = ("@one", "@one,@two", "@two_1", "@one,@three,@four", "x", "1", "@one.batch")
# fmt: on


@dataclass(frozen=True, slots=True)
class Order:
    """A command with its words, which may be names of the scene."""

    program: str
    words: Words

    @property
    def changes(self) -> bool:
        return self.program in ("scontrol", "scancel")

    def __str__(self) -> str:
        words = (f"'{word}'" if " " in word else word for word in self.words)
        return " ".join([self.program, *words])


def some(table: Table, *, least: int, most: int, glue: str = "") -> "st.SearchStrategy[Words]":
    """So many rows of the table, each with one of its values or, where it has none, alone."""
    keys = st.lists(st.sampled_from(sorted(table)), min_size=least, max_size=most, unique=True)
    return keys.flatmap(lambda chosen: st.tuples(*(_one(key, table[key], glue) for key in chosen)))


def _one(key: str, values: Words, glue: str) -> "st.SearchStrategy[str]":
    if not values:
        return st.just(key)
    glue = "=" if key.startswith("--") else glue
    return st.sampled_from([f"{key}{glue}{value}" for value in values])


DESTROYS = "-b"
"""Of elements that wait, 22.05 then ends the whole array: a slip that is not ours."""


def _as_meant(words: Words, jobs: list[str]) -> Order:
    """Without what 22.05 does to more than what is named."""
    kept = (word for word in words if word != DESTROYS or not any("_" in job for job in jobs))
    return Order("scancel", (*kept, *jobs))


def changing() -> "st.SearchStrategy[Order]":
    """`scontrol update` and `scancel`."""
    update = st.builds(
        lambda job, words: Order("scontrol", ("update", f"JobId={job}", *words)),
        st.sampled_from(sorted(SCENE)),
        some(CHANGES, least=1, most=2, glue="="),
    )
    cancel = st.builds(
        _as_meant,
        some(FILTERS, least=0, most=2),
        st.lists(st.sampled_from(TARGETS), max_size=2),
    )
    return st.one_of(update, update, cancel)


def listing() -> "st.SearchStrategy[Order]":
    """`squeue` in a known order, and `sacct` of jobs that are named."""
    queue = some(LISTED, least=1, most=3).map(lambda words: Order("squeue", ("-Si", *words)))
    past = st.builds(
        lambda jobs, words: Order("sacct", (f"-j{jobs}", PLAIN, *words)),
        st.sampled_from(NAMED),
        some(PAST, least=1, most=3),
    )
    return st.one_of(queue, past)
