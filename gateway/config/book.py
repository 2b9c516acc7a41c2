"""The configuration's accounts, users and QOS as accounting keeps them."""

from collections.abc import Callable
from dataclasses import replace

from accounting import assoc
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from broker.model.spec import Limit
from gateway.config import accounts as settings
from gateway.config.settings import Config

IdOf = Callable[[str], int | None]
"""A unix user's uid, or a group's gid; None where there is none."""


def book(config: Config, *, uid_of: IdOf = lambda _: None) -> assoc.Book:
    """Raises ValueError for names that are the same but for their case."""
    made = assoc.book(
        map(_account, config.accounts),
        [own for user in config.users for own in _associations(user)],
        qos=map(_qos, config.qos),
        enforce=config.accounting.enforce,
        default_account=config.accounting.default_account,
    )
    people = [
        assoc.Person(name=UserName(user.name), admin=user.admin_level, uid=uid_of(user.name))
        for user in config.users
    ]
    return replace(made, people={person.name: person for person in people})


def _account(account: settings.Account) -> assoc.Account:
    return assoc.Account(
        name=AccountName(account.name),
        parent=AccountName(account.parent),
        description=account.description,
        organization=account.organization,
        fairshare=account.fairshare,
        qos=account.qos or (("normal",) if account.name == "root" else None),
        default_qos=account.default_qos,
        limits=_of_association(account),
    )


def _associations(user: settings.User) -> list[assoc.Association]:
    return [
        assoc.Association(
            user=UserName(user.name),
            account=AccountName(own.account),
            partition=own.partition,
            fairshare=own.fairshare,
            qos=own.qos,
            default_qos=own.default_qos,
            default_account=own.account == user.default_account,
            limits=_of_association(own),
        )
        for own in user.associations
    ]


def _of_association(own: settings.AssociationLimits) -> Limits:
    return Limits(
        grp_jobs=own.grp_jobs,
        grp_submit_jobs=own.grp_submit_jobs,
        grp_wall=_seconds(own.grp_wall),
        grp_tres=own.grp_tres,
        grp_tres_mins=own.grp_tres_mins,
        grp_tres_run_mins=own.grp_tres_run_mins,
        max_jobs=own.max_jobs,
        max_submit_jobs=own.max_submit_jobs,
        max_wall=_seconds(own.max_wall),
        max_tres_per_job=own.max_tres_per_job,
        max_tres_per_node=own.max_tres_per_node,
        max_tres_mins_per_job=own.max_tres_mins_per_job,
    )


def _qos(qos: settings.Qos) -> assoc.Qos:
    return assoc.Qos(
        name=qos.name,
        description=qos.description or qos.name,
        priority=qos.priority,
        flags=frozenset(qos.flags),
        usage_factor=float(qos.usage_factor),
        limit_factor=None if qos.limit_factor is None else float(qos.limit_factor),
        usage_threshold=None if qos.usage_threshold is None else float(qos.usage_threshold),
        preempt=qos.preempt,
        preempt_mode=qos.preempt_mode.lower(),
        grace_time=qos.grace_time,
        limits=_of_qos(qos),
    )


def _of_qos(qos: settings.Qos) -> Limits:
    return Limits(
        grp_jobs=qos.grp_jobs,
        grp_submit_jobs=qos.grp_submit_jobs,
        grp_wall=_seconds(qos.grp_wall),
        grp_tres=qos.grp_tres,
        grp_tres_mins=qos.grp_tres_mins,
        grp_tres_run_mins=qos.grp_tres_run_mins,
        max_jobs=qos.max_jobs_per_user,
        max_jobs_per_account=qos.max_jobs_per_account,
        max_submit_jobs=qos.max_submit_jobs_per_user,
        max_submit_jobs_per_account=qos.max_submit_jobs_per_account,
        max_wall=_seconds(qos.max_wall),
        max_tres_per_job=qos.max_tres_per_job,
        max_tres_per_node=qos.max_tres_per_node,
        max_tres_per_user=qos.max_tres_per_user,
        max_tres_per_account=qos.max_tres_per_account,
        max_tres_mins_per_job=qos.max_tres_mins_per_job,
        min_tres_per_job=qos.min_tres_per_job,
    )


def _seconds(limit: Limit | None) -> int | None:
    """No limit is the same as none given, here."""
    return limit if isinstance(limit, int) else None
