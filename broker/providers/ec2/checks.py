"""What a site needs in AWS, looked at without buying anything: one line each, with the way out."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial

from broker.model.finding import Finding
from broker.model.offer import Market
from broker.providers.ec2 import naming
from broker.providers.ec2.clients import HOME_REGION, Api, Reply, region_names
from broker.providers.ec2.errors import QUOTAS, STANDARD, AwsError, NoAnswerError
from broker.providers.ec2.images import Images, named
from broker.providers.ec2.lines import POLICY, failed, guarded, way_out
from broker.providers.ec2.network import Vpcs
from broker.providers.ec2.permissions import (
    DELETES,
    DONE_TO_OURS,
    LOOKS,
    TRIED_TYPE,
    UNTRIED,
    Simulated,
    made,
    simulated,
    tried,
)
from broker.providers.ec2.pricelist import PRICE_LIST_REGION
from broker.providers.ec2.queues import arn_of, queue_line
from broker.providers.ec2.quotas import limits
from broker.providers.ec2.settings import Ec2Settings

AT_ONCE = 8
MOST_SKEW = 5
"""Seconds that a clock may be wrong."""
CLOCK_MATTERS = (
    "AWS refuses calls from five minutes on; what machines cost goes by AWS's clock, but times of "
    "jobs, their shares of machines and time limits go by this one"
)
MORE = "aws service-quotas request-service-quota-increase --service-code ec2 --desired-value VCPUS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What partitions want of EC2."""

    regions: tuple[str, ...]
    """Empty: all that the account has."""
    images: tuple[tuple[str, str, bool], ...]
    """Node prefix, architecture, and whether it may be a machine with NVIDIA's GPUs."""
    spot: bool = False
    groups: tuple[str, ...] = (STANDARD,)
    """Groups of families, as quotas count them, whose types may be bought."""
    queues: Mapping[str, str] = field(default_factory=dict)
    """URLs of queues of interruptions, by region."""


@dataclass(frozen=True, slots=True)
class Checks:
    """Asks AWS; changes nothing there."""

    api: Api
    site: naming.Site
    settings: Ec2Settings
    wish: Wish
    now: Callable[[], float] = time.time

    def lines(self) -> Iterator[Finding]:
        """Credentials first; without them nothing else can be looked at."""
        home = next(iter(self.wish.regions), HOME_REGION)
        try:
            who = self.api.call("sts", home, "get_caller_identity")
            regions = self.wish.regions or region_names(self.api, home)
        except (AwsError, NoAnswerError) as error:
            yield failed("aws credentials", error)
            return
        yield from self._credentials(who)
        arn = str(who["Arn"])
        _, partition, *_ = arn.split(":")
        urls = self.wish.queues.items()
        queues = [arn_of(url, region, partition=partition) for region, url in urls]
        ours = simulated(self.api, arn, queues)
        yield _simulated_line(ours, [*UNTRIED, *([DELETES] if queues else [])])
        yield from guarded("aws prices", self._prices)
        if self.settings.public and not self.settings.ssh_from:
            hint = "set aws.ssh_from to this gateway's public address, such as 203.0.113.7/32"
            text = "only from within the VPC, but machines are reached by public addresses"
            yield Finding("aws ssh", False, text, hint)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for found in pool.map(lambda region: self._region(region, ours), regions):
                yield from found
        for region, url in self.wish.queues.items():
            look = partial(queue_line, self.api, region, url)
            yield from guarded(f"{region} interruptions", look)

    def _credentials(self, who: Reply) -> Iterator[Finding]:
        yield Finding("aws credentials", True, f"{who['Arn']} of account {who['Account']}")
        told = who.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if told is not None:
            yield _clock(round(self.now() - parsedate_to_datetime(told).timestamp()))

    def _prices(self) -> Iterator[Finding]:
        """Of the price list one entry."""
        match = {"Type": "TERM_MATCH", "Field": "instanceType", "Value": TRIED_TYPE}
        ask = {"ServiceCode": "AmazonEC2", "Filters": [match], "MaxResults": 1}
        self.api.call("pricing", PRICE_LIST_REGION, "get_products", **ask)
        yield Finding("aws prices", True, "the price list answers")

    def _region(self, region: str, ours: Simulated) -> list[Finding]:
        looks: Sequence[tuple[str, Callable[[str], Iterable[Finding]]]] = (
            ("network", self._network),
            ("images", self._images),
            ("permissions", lambda region: self._permissions(region, ours)),
            ("quotas", self._quotas),
        )
        found: list[Finding] = []
        for name, look in looks:
            found += guarded(f"{region} {name}", partial(look, region))
        return found

    def _network(self, region: str) -> Iterator[Finding]:
        vpcs = Vpcs(self.api, self.settings)
        vpc = str(vpcs.vpc(region)["VpcId"])
        zones = sorted({subnet.zone for subnet in vpcs.subnets(region, vpc)})
        hint = "" if zones else "make a subnet in each zone, or name some in aws.subnets"
        text = f"{vpc}, subnets in {', '.join(zones) or 'no zone'}"
        yield Finding(f"{region} network", bool(zones), text, hint)

    def _images(self, region: str) -> Iterator[Finding]:
        """Of each architecture, with GPUs and without; what is missing by its name."""
        images = Images(self.api, lambda: 0.0)
        found: dict[str, str] = {}
        wrong: dict[str, str] = {}
        for prefix, arch, nvidia in self.wish.images:
            name = named(prefix, arch, self.settings.images, nvidia=nvidia)
            kind = f"{arch} with GPUs" if nvidia else arch
            try:
                image = images.find(region, name)
            except AwsError as error:
                wrong[f"{kind}: {name}: {error.code}"] = way_out(error) or ANOTHER_IMAGE
                continue
            if image.known and image.arch in {"", arch}:
                found[f"{kind} {image.id}"] = ""
            else:
                told = f"is for {image.arch}" if image.known else "is no image here"
                wrong[f"{kind}: {image.id} {told}"] = ANOTHER_IMAGE
        hint = "; ".join(dict.fromkeys(wrong.values()))
        yield Finding(f"{region} images", not wrong, ", ".join([*wrong, *found]), hint)

    def _permissions(self, region: str, ours: Simulated) -> Iterator[Finding]:
        asks = {**LOOKS, **made(self.site, f"{region}a"), **DONE_TO_OURS}
        found = tried(self.api, region, asks, ours=ours)
        text = f"denied: {', '.join(found.denied)}" if found.denied else "all calls are allowed"
        if found.doubtful:
            text += f"; for things of ours EC2 does not say: {', '.join(found.doubtful)}"
        hint = f"allow {', '.join(found.denied)} to these credentials; {POLICY}"
        yield Finding(f"{region} permissions", not found.denied, text, hint if found.denied else "")

    def _quotas(self, region: str) -> Iterator[Finding]:
        """None of what partitions may buy is to be zero."""
        markets = (Market.ON_DEMAND, Market.SPOT) if self.wish.spot else (Market.ON_DEMAND,)
        known = limits(self.api, region)
        told, none = {}, []
        for group, market in ((group, market) for market in markets for group in self.wish.groups):
            code = QUOTAS[group].get(market, "")
            if code in known and code not in told:
                short = "Standard" if group == STANDARD else group
                told[code] = f"{short} {market} {known[code]} ({code})"
                none += [] if known[code] else [code]
        asks = "; ".join(f"{MORE} --region {region} --quota-code {code}" for code in none)
        out = "leave such types, or spot, out of what partitions may buy"
        text = "vCPUs: " + (", ".join(told.values()) or "nothing is told")
        yield Finding(f"{region} quotas", not none, text, f"{asks}; or {out}" if none else "")


ANOTHER_IMAGE = "name an image in aws.images, or in the partition's elastic.image"


def _simulated_line(ours: Simulated, actions: Sequence[str]) -> Finding:
    """What has no dry run."""
    denied = [one for one in actions if one in ours.denied]
    known = [one for one in actions if one in ours.told and one not in denied]
    rest = [one for one in actions if one not in ours.told]
    parts = {"denied": denied, "allowed": known, "cannot be tried": rest}
    text = "; ".join(f"{word}: {', '.join(names)}" for word, names in parts.items() if names)
    hint = f"allow {', '.join(denied)}; {POLICY}" if denied else ""
    return Finding("aws permissions", not denied, text, hint)


def _clock(ahead: int) -> Finding:
    """How this host's clock goes beside AWS's, by which machines are billed."""
    way = "ahead of" if ahead > 0 else "behind"
    text = f"{abs(ahead)} s {way} AWS's" if ahead else "as AWS's"
    hint = "" if abs(ahead) <= MOST_SKEW else f"set it (chrony, ntpd); {CLOCK_MATTERS}"
    return Finding("aws clock", not hint, text, hint)
