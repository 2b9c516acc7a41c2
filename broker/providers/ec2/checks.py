"""What a site needs in AWS, looked at without buying anything: one line each, with the way out."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from broker.model.offer import Market
from broker.providers.ec2 import naming
from broker.providers.ec2.clients import HOME_REGION, Api, region_names
from broker.providers.ec2.errors import QUOTAS, STANDARD, AwsError, NoAnswerError
from broker.providers.ec2.images import Images, named
from broker.providers.ec2.network import Networks
from broker.providers.ec2.settings import Ec2Settings

POLICY = "docs/aws-policy.json has all that is needed"
DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
AT_ONCE = 8
TRIED_TYPE = "m7i.large"
MOST_SKEW = 5
"""Seconds that a clock may be wrong."""
CLOCK_MATTERS = "AWS refuses calls from five minutes on, and costs are off by as much"
NOBODY = "i-00000000000000000"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at."""

    name: str
    good: bool
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What partitions want of EC2."""

    regions: tuple[str, ...]
    """Empty: all that the account has."""
    images: tuple[tuple[str, str, bool], ...]
    """Node prefix, architecture, and whether it may be a machine with NVIDIA's GPUs."""
    spot: bool = False


@dataclass(frozen=True, slots=True)
class Checks:
    """Asks AWS; changes nothing there."""

    api: Api
    site: naming.Site
    settings: Ec2Settings
    wish: Wish
    now: Callable[[], float] = time.time

    def lines(self) -> Iterator[Line]:
        """Credentials first; without them nothing else can be looked at."""
        home = next(iter(self.wish.regions), HOME_REGION)
        credentials = _guarded("aws credentials", lambda: self._credentials(home))
        yield from credentials
        if not credentials[0].good:
            return
        if self.settings.public and not self.settings.ssh_from:
            hint = "set aws.ssh_from to this gateway's public address, such as 203.0.113.7/32"
            text = "only from within the VPC, but machines are reached by public addresses"
            yield Line("aws ssh", False, text, hint)
        regions = self.wish.regions or region_names(self.api, home)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for found in pool.map(self._region, regions):
                yield from found

    def _credentials(self, region: str) -> Iterator[Line]:
        who = self.api.call("sts", region, "get_caller_identity")
        yield Line("aws credentials", True, f"{who['Arn']} of account {who['Account']}")
        told = who.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if told is not None:
            yield _clock(round(self.now() - parsedate_to_datetime(told).timestamp()))

    def _region(self, region: str) -> list[Line]:
        looks: Sequence[tuple[str, Callable[[str], Iterable[Line]]]] = (
            ("network", self._network),
            ("images", self._images),
            ("permissions", self._permissions),
            ("quotas", self._quotas),
        )
        found: list[Line] = []
        for name, look in looks:
            found += _guarded(f"{region} {name}", lambda look=look: look(region))  # type: ignore[misc]
        return found

    def _network(self, region: str) -> Iterator[Line]:
        vpc, subnets = Networks(self.api, self.site, self.settings).look(region)
        zones = sorted({subnet.zone for subnet in subnets})
        hint = "" if zones else "make a subnet in each zone, or name some in aws.subnets"
        text = f"{vpc}, subnets in {', '.join(zones) or 'no zone'}"
        yield Line(f"{region} network", bool(zones), text, hint)

    def _images(self, region: str) -> Iterator[Line]:
        images = Images(self.api, lambda: 0.0)
        found = {}
        for prefix, arch, nvidia in self.wish.images:
            name = named(prefix, arch, self.settings.images, nvidia=nvidia)
            found[name] = images.find(region, name)
        text = ", ".join(sorted({image.id for image in found.values()}))
        yield Line(f"{region} images", True, text)

    def _permissions(self, region: str) -> Iterator[Line]:
        denied = [name for name, ask in self._asks() if self._is_denied(region, name, ask)]
        words = "".join(part.title() for part in denied[0].split("_")) if denied else ""
        text = f"denied: {', '.join(denied)}" if denied else "all calls are allowed"
        hint = f"allow ec2:{words} and the like to these credentials; {POLICY}" if denied else ""
        yield Line(f"{region} permissions", not denied, text, hint)

    def _asks(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Calls that change something, to be tried without doing so."""
        name = naming.name(self.site, "check", self.site.id)
        tags = naming.tag_list(naming.common(self.site, "check", "dry-run"))
        tagged = [{"ResourceType": "instance", "Tags": tags}]
        one = {"MinCount": 1, "MaxCount": 1, "InstanceType": TRIED_TYPE}
        yield "run_instances", {**one, "ImageId": "ami-00000000", "TagSpecifications": tagged}
        yield (
            "create_launch_template",
            {
                "LaunchTemplateName": name,
                "LaunchTemplateData": {"InstanceType": TRIED_TYPE},
            },
        )
        fleet = {"TargetCapacitySpecification": {"TotalTargetCapacity": 1}, "Type": "instant"}
        yield "create_fleet", {**fleet, "LaunchTemplateConfigs": []}
        yield "create_tags", {"Resources": [NOBODY], "Tags": tags}
        for operation in ("terminate_instances", "stop_instances", "start_instances"):
            yield operation, {"InstanceIds": [NOBODY]}
        yield "create_security_group", {"GroupName": name, "Description": "dry run"}

    def _is_denied(self, region: str, operation: str, params: dict[str, Any]) -> bool:
        """EC2 looks at permissions first: any other complaint means that it is allowed."""
        try:
            self.api.call("ec2", region, operation, DryRun=True, **params)
        except AwsError as error:
            return error.code in DENIED
        return False

    def _quotas(self, region: str) -> Iterator[Line]:
        markets = (Market.ON_DEMAND, Market.SPOT) if self.wish.spot else (Market.ON_DEMAND,)
        groups = [STANDARD]
        if any(nvidia for _, _, nvidia in self.wish.images):
            groups += ["G and VT", "P"]
        told, good = [], True
        for group in groups:
            for market in markets:
                code = QUOTAS[group][market]
                value = self._quota(region, code)
                short = "Standard" if group == STANDARD else group
                told.append(f"{short} {market} {value:g} ({code})")
                good = good and (value > 0 or group != STANDARD)
        hint = "" if good else f"ask for more: service quotas, {region}, Amazon EC2"
        yield Line(f"{region} quotas", good, "vCPUs: " + ", ".join(told), hint)

    def _quota(self, region: str, code: str) -> float:
        ask = {"ServiceCode": "ec2", "QuotaCode": code}
        reply = self.api.call("service-quotas", region, "get_service_quota", **ask)
        return float(reply["Quota"]["Value"])


def _clock(ahead: int) -> Line:
    """How this host's clock goes beside AWS's, by which machines are billed."""
    way = "ahead of" if ahead > 0 else "behind"
    text = f"{abs(ahead)} s {way} AWS's" if ahead else "as AWS's"
    hint = "" if abs(ahead) <= MOST_SKEW else f"set it (chrony, ntpd); {CLOCK_MATTERS}"
    return Line("aws clock", not hint, text, hint)


def _guarded(name: str, look: Callable[[], Iterable[Line]]) -> list[Line]:
    """What AWS says no to is a finding."""
    try:
        return list(look())
    except AwsError as error:
        return [Line(name, False, str(error), _way_out(error))]
    except NoAnswerError as error:
        return [Line(name, False, str(error), "look at the network, and at aws.endpoint_url")]


WAYS_OUT = {
    "NoCredentials": "`aws configure`, AWS_PROFILE, or aws.profile in the configuration",
    "InvalidClientTokenId": "these credentials are not known: make new ones",
    "SignatureDoesNotMatch": "look at the secret key, and at this host's clock",
    "RequestExpired": "set this host's clock (chrony, ntpd)",
    "ExpiredToken": "these credentials are over: renew them (`aws sso login`)",
    "OptInRequired": "opt into the region, or leave it out of aws.regions",
    "AuthFailure": "opt into the region, or leave it out of aws.regions",
    "ParameterNotFound": "name an image in aws.images",
}


def _way_out(error: AwsError) -> str:
    if error.code in DENIED:
        return POLICY
    return WAYS_OUT.get(error.code, "")
