"""Users, accounts, associations, QOS and TRES as slurmdbd's records have them (25.11.7)."""

from collections.abc import Callable, Mapping
from typing import Any

from accounting.assoc import Qos
from accounting.limits import Limits
from gateway.query.assocs import Row
from gateway.query.context import Context
from gateway.query.managed import Owned, User
from gateway.query.shape import number, unset
from gateway.query.tresnames import counted

Content = Callable[[Any, Context, Mapping[str, int]], dict[str, Any]]


def short(row: Row, ctx: Context) -> dict[str, Any]:
    """An association's names and number."""
    return {
        "account": row.account.name,
        "cluster": ctx.site.cluster,
        "partition": (row.user.partition or "") if row.user else "",
        "user": row.user.user if row.user else "",
        "id": row.id,
    }


def users(found: list[User], ctx: Context, _: Mapping[str, int]) -> dict[str, Any]:
    records: dict[str, dict[str, Any]] = {}
    for user in found:
        record = records.setdefault(user.name, _user(user))
        if user.row is not None:
            record["associations"].append(short(user.row, ctx))
    return {"users": list(records.values())}


def _user(user: User) -> dict[str, Any]:
    return {
        "administrator_level": [user.admin],
        "associations": [],
        "coordinators": [],
        "default": {"qos": 1, "account": user.account, "wckey": ""},
        "flags": ["NONE"],
        "name": user.name,
        "old_name": "",
        "wckeys": [],
    }


def accounts(found: list[Owned], ctx: Context, _: Mapping[str, int]) -> dict[str, Any]:
    records: dict[str, dict[str, Any]] = {}
    for one in found:
        record = records.setdefault(one.account.name, _account(one))
        if one.row is not None:
            record["associations"].append(short(one.row, ctx))
    return {"accounts": list(records.values())}


def _account(one: Owned) -> dict[str, Any]:
    return {
        "associations": [],
        "coordinators": [],
        "description": one.account.description,
        "name": one.account.name,
        "organization": one.account.organization,
        "flags": [],
    }


def associations(found: list[Row], ctx: Context, known: Mapping[str, int]) -> dict[str, Any]:
    return {"associations": [_association(row, ctx, known) for row in found]}


def _association(row: Row, ctx: Context, known: Mapping[str, int]) -> dict[str, Any]:
    limits = row.account.limits if row.user is None else row.user.limits
    names = short(row, ctx)
    return {
        "accounting": [],
        "account": names["account"],
        "cluster": names["cluster"],
        "comment": "",
        "default": {"qos": row.default_qos},
        "flags": [],
        "max": {
            "jobs": {
                "per": {
                    "count": number(limits.grp_jobs),
                    "accruing": unset(),
                    "submitted": number(limits.grp_submit_jobs),
                    "wall_clock": _minutes(limits.max_wall),
                },
                "active": number(limits.max_jobs),
                "accruing": unset(),
                "total": number(limits.max_submit_jobs),
            },
            "tres": {
                "total": _tres(limits.grp_tres, known),
                "minutes": {
                    "total": _tres(limits.grp_tres_mins, known),
                    "per": {"job": _tres(limits.max_tres_mins_per_job, known)},
                },
                "group": {"minutes": _tres(limits.grp_tres_run_mins, known), "active": []},
                "per": {
                    "job": _tres(limits.max_tres_per_job, known),
                    "node": _tres(limits.max_tres_per_node, known),
                },
            },
            "per": {"account": {"wall_clock": _minutes(limits.grp_wall)}},
        },
        "is_default": bool(row.user and row.user.default_account),
        "lineage": "",
        "min": {"priority_threshold": unset()},
        "parent_account": "" if row.user or row.account.name == "root" else row.account.parent,
        "partition": names["partition"],
        "priority": unset(),
        "qos": list(row.qos),
        "shares_raw": row.shares,
        "user": names["user"],
        "id": row.id,
    }


def _minutes(seconds: int | None) -> dict[str, Any]:
    return number(None if seconds is None else seconds // 60)


def _tres(limits: Mapping[str, int], known: Mapping[str, int]) -> list[dict[str, Any]]:
    return [counted(name, count, known) for name, count in limits.items()]


def qos(found: list[Qos], _: Context, known: Mapping[str, int]) -> dict[str, Any]:
    return {"qos": [_qos(one, place, known) for place, one in enumerate(found, start=1)]}


def _qos(one: Qos, place: int, known: Mapping[str, int]) -> dict[str, Any]:
    limits = one.limits
    return {
        "description": one.description,
        "flags": [FLAGS.get(flag, flag) for flag in sorted(one.flags)],
        "id": place,
        "limits": {
            "grace_time": 0,
            "max": {
                **_counts(limits),
                "tres": _highest(limits, known),
                "wall_clock": {
                    "per": {"qos": _minutes(limits.grp_wall), "job": _minutes(limits.max_wall)}
                },
            },
            "factor": unset(),
            "min": {
                "priority_threshold": unset(),
                "tres": {"per": {"job": _tres(limits.min_tres_per_job, known)}},
            },
        },
        "name": one.name,
        "preempt": {"exempt_time": unset(), "list": [], "mode": ["DISABLED"]},
        "priority": number(one.priority),
        "usage_factor": number(1.0),
        "usage_threshold": unset(),
    }


def _counts(limits: Limits) -> dict[str, Any]:
    """How many jobs there may be."""
    active = {"account": number(limits.max_jobs_per_account), "user": number(limits.max_jobs)}
    submitted = {
        "account": number(limits.max_submit_jobs_per_account),
        "user": number(limits.max_submit_jobs),
    }
    return {
        "active_jobs": {"accruing": unset(), "count": number(limits.grp_jobs)},
        "jobs": {"active_jobs": {"per": active}, "per": submitted},
        "accruing": {"per": {"account": unset(), "user": unset()}},
    }


def _highest(limits: Limits, known: Mapping[str, int]) -> dict[str, Any]:
    """How much of each TRES there may be."""
    minutes = {
        "qos": _tres(limits.grp_tres_run_mins, known),
        "job": _tres(limits.max_tres_mins_per_job, known),
        "account": [],
        "user": [],
    }
    return {
        "total": _tres(limits.grp_tres, known),
        "minutes": {"total": _tres(limits.grp_tres_mins, known), "per": minutes},
        "per": {
            "account": _tres(limits.max_tres_per_account, known),
            "job": _tres(limits.max_tres_per_job, known),
            "node": _tres(limits.max_tres_per_node, known),
            "user": _tres(limits.max_tres_per_user, known),
        },
    }


FLAGS = {"DenyOnLimit": "DENY_LIMIT"}


def tres(found: list[tuple[str, int]], _: Context, known: Mapping[str, int]) -> dict[str, Any]:
    return {"TRES": [counted(name, 0, known) for name, _number in found]}


CONTENT: Mapping[str, Content] = {
    "user": users,
    "account": accounts,
    "association": associations,
    "qos": qos,
    "tres": tres,
}
"""By what `sacctmgr show` calls them."""
