"""The account at AWS as the configuration uses it: regions, figures, checks, its bill."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from broker.model.errors import Refused
from broker.model.finding import Finding
from broker.model.offer import BLOCK, RESERVED, TARGETED, Market
from broker.optimize.catalog import Region
from broker.optimize.figures import RegionFigures
from broker.providers.ec2.checks import Checks, Wish
from broker.providers.ec2.clients import HOME_REGION, Api, region_names
from broker.providers.ec2.errors import GPUS, QUOTAS, STANDARD, AwsError, quota_of
from broker.providers.ec2.explorer import Billed, billed, billed_usage
from broker.providers.ec2.figures import read_region
from broker.providers.ec2.keys import site_id
from broker.providers.ec2.naming import Site as Ec2Site
from broker.providers.ec2.settings import Ec2Settings
from gateway.config.paths import Paths
from gateway.config.settings import Config, Elastic
from gateway.staging import api_of

WAY_OUT = "`spz check` tells what is missing"


def figures_reader(
    config: Config, *, known: frozenset[str], now: str
) -> Callable[[str], RegionFigures]:
    """Reads a region's figures as of `now`; types that are `known` are not asked for again.

    What it gives may be called from several threads. Raises Refused where AWS says no, OSError
    where it does not answer.
    """
    api = api_of(config)

    def figures(region: str) -> RegionFigures:
        try:
            return read_region(api, region, known, now=now)
        except AwsError as error:
            raise Refused(str(error), hint=WAY_OUT) from error

    return figures


def enabled_regions(config: Config) -> frozenset[str]:
    """Those that the account may use. Raises Refused, OSError."""
    home = next(iter(config.aws.regions), HOME_REGION)
    try:
        return frozenset(region_names(api_of(config), home))
    except AwsError as error:
        raise Refused(str(error), hint=WAY_OUT) from error


def uses_ec2(config: Config) -> bool:
    """Whether any partition's machines come from there."""
    return bool(ec2_parts(config))


def reserved_words(config: Config) -> frozenset[str]:
    """What `--constraint` can name of capacity reservations, in lower case."""
    bought = ec2_parts(config)
    ids = (id.lower() for part in bought for id in part.reservations)
    return frozenset((RESERVED, TARGETED, BLOCK, *ids)) if bought else frozenset()


def aws_findings(paths: Paths, config: Config) -> Iterator[Finding]:
    """What is right and wrong with the account, for `spz check`."""
    aws, bought = config.aws, ec2_parts(config)
    groups = _groups(bought)
    kinds = (False,) if groups.isdisjoint(GPUS) else (False, True)
    wish = Wish(
        regions=_named_regions(config),
        images=tuple(
            (elastic.name_prefix, elastic.arch, nvidia) for elastic in bought for nvidia in kinds
        ),
        spot=any(elastic.spot for elastic in bought),
        groups=tuple(group for group in QUOTAS if group in groups),
        queues=aws.interruption_queues,
    )
    own = site_id(paths.home / "ec2")
    site = Ec2Site(own, config.cluster, aws.stage, tuple(aws.tags.items()))
    api = api_of(config)
    return Checks(api, site, ec2_settings(config), wish).lines()


def _groups(bought: Iterable[Elastic]) -> frozenset[str]:
    """Groups of families, as quotas count them; without a word of any, of cpus and of GPUs."""
    named = ([*part.instance_types, *part.families] for part in bought)
    return frozenset(
        group
        for names in named
        for group in ([quota_of(name, Market.ON_DEMAND)[1] for name in names] or [STANDARD, *GPUS])
    )


def ec2_parts(config: Config) -> list[Elastic]:
    """The parts of partitions that come from EC2."""
    return [part for part in _elastic(config) if part.provider == "ec2"]


def _elastic(config: Config) -> list[Elastic]:
    return [part.elastic for part in config.partitions if part.elastic is not None]


def _named_regions(config: Config) -> tuple[str, ...]:
    """Those that partitions may buy in; empty where any of them names none."""
    named = [elastic.regions or config.aws.regions for elastic in ec2_parts(config)]
    return tuple(sorted({*chain(*named)})) if all(named) else ()


def buying_regions(config: Config, known: Iterable[Region]) -> tuple[str, ...]:
    """Where any partition may buy, or plans with EC2's figures; sorted."""
    return regions_of(_elastic(config) or [Elastic()], config, known)


def regions_of(
    parts: Iterable[Elastic], config: Config, known: Iterable[Region]
) -> tuple[str, ...]:
    """One that names none takes all that are `known`, those to be opted into only if it says so."""
    there = tuple(known)
    found = (
        part.regions
        or config.aws.regions
        or (one.name for one in there if part.opt_in_regions or not one.opt_in)
        for part in parts
    )
    return tuple(sorted({*chain(*found)}))


def ec2_settings(config: Config) -> Ec2Settings:
    aws = config.aws
    by_prefix = {
        part.elastic.name_prefix: part.elastic.image
        for part in config.partitions
        if part.elastic is not None and part.elastic.image is not None
    }
    return Ec2Settings(
        ssh_port=aws.ssh_port,
        ssh_from=aws.ssh_from,
        public=aws.address == "public",
        vpcs=aws.vpcs,
        subnets=aws.subnets,
        security_groups=aws.security_groups,
        images={**aws.images, **by_prefix},
        instance_profile=aws.instance_profile,
        root_gib=aws.root_gb,
        kms_key=aws.kms_key,
        devices=aws.devices,
        efa=aws.efa,
    )


Word = tuple[Sequence[Billed], Sequence[Billed]]
"""What machines have cost, and what each kind of use."""


def explorer(config: Config) -> Callable[[int, int], Word] | None:
    """Cost Explorer's word on what was spent; None where no machines are bought at AWS."""
    return explored(api_of(config)) if uses_ec2(config) else None


def explored(api: Api) -> Callable[[int, int], Word]:
    """The same of that API."""

    def ask(since: int, until: int) -> Word:
        try:
            return list(billed(api, since, until)), list(billed_usage(api, since, until))
        except AwsError as error:
            raise Refused(f"Cost Explorer: {error}") from error

    return ask
