"""The format and the order of squeue: typed ones, those of the environment, its own."""

from dataclasses import dataclass

from broker.model.job import Job
from gateway.api.programs.reading import Options, fail
from gateway.query import views
from gateway.query.layout import Layout
from gateway.query.select import DEFAULT_SORT

FORMATS = {"format": "-o (--format)", "Format": "-O (--Format)"}
MIXED = "squeue: error: {} is incompatible with {}\n"
LONG_AND_FORMAT = (
    "squeue: fatal: Options -o(--format) and -l(--long) are mutually exclusive."
    " Please remove one and retry.\n"
)


@dataclass(frozen=True, slots=True)
class Look:
    """The format and the order that were asked for."""

    layout: Layout[Job]
    sort: str
    dated: bool = False


def check_formats(options: Options) -> None:
    """Raises Finished for formats typed that exclude each other (22.05)."""
    typed = [one.opt.long for one in options.query.said if one.opt.long in FORMATS]
    for long in typed:
        if long != typed[0]:
            raise fail(MIXED.format(FORMATS[long], FORMATS[typed[0]]))
    if typed[:1] == ["format"] and options.has("long"):
        raise fail(LONG_AND_FORMAT)


def own_format(options: Options) -> tuple[str | None, str | None]:
    """The letters and the names that are to be shown; one of them at most, None for none.

    Those of the environment count where no format was typed, nor -l; of both there the letters.
    """
    typed = {one.opt.long for one in options.query.said}
    shut = not typed.isdisjoint((*FORMATS, "long"))
    letters, names = (
        None if shut and long not in typed else options.text(long) for long in FORMATS
    )
    return letters, None if letters is not None else names


def look(options: Options) -> Look:
    """What is to be shown of jobs."""
    sort = options.text("sort") or DEFAULT_SORT
    if options.has("only-job-state"):
        return Look(views.squeue_letters(views.SQUEUE_STATES), sort)
    letters, names = own_format(options)
    if letters is not None:
        return Look(views.squeue_letters(letters), sort)
    if options.has("start"):
        start_sort = options.text("sort") or views.START_SORT
        return Look(views.squeue_letters(views.SQUEUE_START), start_sort)
    if names is not None:
        return Look(views.squeue_names(names), sort, dated=options.has("long"))
    if options.has("long"):
        return Look(views.squeue_letters(views.SQUEUE_LONG), sort, dated=True)
    return Look(views.squeue_letters(views.SQUEUE_DEFAULT), sort)
