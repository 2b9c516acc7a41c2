"""What AWS answers, as figures: zones by id, prices in micro-dollars, types in our columns."""

import json
from typing import Any

import pytest

from broker.providers.ec2.errors import AwsError
from broker.providers.ec2.figures import read_region, type_row

NOW = "2026-11-29T21:00:00+00:00"
PRODUCT = {
    "product": {"attributes": {"instanceType": "g5.xlarge"}},
    "terms": {
        "OnDemand": {"a": {"priceDimensions": {"b": {"pricePerUnit": {"USD": "1.0060000000"}}}}}
    },
}
G9: dict[str, Any] = {
    "InstanceType": "g9.2xlarge",
    "VCpuInfo": {"DefaultVCpus": 8},
    "MemoryInfo": {"SizeInMiB": 32768},
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "AMD"},
    "GpuInfo": {
        "Gpus": [
            {
                "Name": "X9 80",
                "Manufacturer": "NVIDIA",
                "Count": 2,
                "MemoryInfo": {"SizeInMiB": 81920},
            }
        ]
    },
    "InstanceStorageInfo": {"TotalSizeInGB": 450, "NvmeSupport": "required"},
    "NetworkInfo": {"EfaSupported": True},
    "BareMetal": False,
    "BurstablePerformanceSupported": False,
}


class Replies:
    """An `Api` with an answer for each operation; lists come in pages of one."""

    def __init__(self, **changed: Any) -> None:
        self.answers: dict[str, Any] = {
            "describe_availability_zones": {
                "AvailabilityZones": [
                    {"ZoneName": "us-east-1a", "ZoneId": "use1-az6"},
                    {"ZoneName": "us-east-1b", "ZoneId": "use1-az1"},
                    {"ZoneName": "l", "ZoneId": "l1", "ZoneType": "local-zone"},
                ]
            },
            "describe_regions": {"Regions": [{"OptInStatus": "opt-in-not-required"}]},
            "describe_instance_type_offerings": [
                {"InstanceTypeOfferings": [{"InstanceType": "g5.xlarge", "Location": "use1-az6"}]},
                {"InstanceTypeOfferings": [{"InstanceType": "g5.xlarge", "Location": "use1-az1"}]},
                {"InstanceTypeOfferings": [{"InstanceType": "g9.2xlarge", "Location": "use1-az1"}]},
            ],
            "describe_instance_types": {"InstanceTypes": [G9]},
            "describe_spot_price_history": [
                {
                    "SpotPriceHistory": [
                        _spot("us-east-1a", "0.4", 1),
                        _spot("us-east-1a", "0.5", 2),
                    ]
                },
                {"SpotPriceHistory": [_spot("us-east-1l", "0.1", 3)]},
            ],
            "get_products": [{"PriceList": [json.dumps(PRODUCT)]}, {"PriceList": []}],
            **changed,
        }
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call(self, _service: str, _region: str, operation: str, **params: Any) -> dict[str, Any]:
        self.asked.append((operation, params))
        answer = self.answers[operation]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, list):
            page = int(params.get("NextToken", "0"))
            more = {"NextToken": str(page + 1)} if page + 1 < len(answer) else {}
            return {**answer[page], **more}
        return dict(answer)


def _spot(zone: str, price: str, at: int) -> dict[str, Any]:
    return {
        "InstanceType": "g5.xlarge",
        "AvailabilityZone": zone,
        "SpotPrice": price,
        "Timestamp": at,
    }


def test_a_region_is_read_page_by_page() -> None:
    api = Replies()
    found = read_region(api, "us-east-1", frozenset({"g5.xlarge"}), now=NOW)
    assert found.zones == ("use1-az1", "use1-az6")
    assert found.offered == {"g5.xlarge": ("use1-az1", "use1-az6"), "g9.2xlarge": ("use1-az1",)}
    assert found.on_demand == {"g5.xlarge": 1_006_000}
    assert found.spot == {("g5.xlarge", "use1-az6"): 500_000}, "the latest, by zone id"
    assert list(found.types) == ["g9.2xlarge"], "the others are known"
    assert not found.opt_in


@pytest.mark.parametrize(
    "answer", [AwsError("AccessDenied", "no", 403), {"PriceList": []}, {"PriceList": ["nonsense"]}]
)
def test_a_price_list_without_an_answer_leaves_prices_out(answer: Any) -> None:
    found = read_region(Replies(get_products=answer), "us-east-1", frozenset(), now=NOW)
    assert found.on_demand is None


def test_a_region_that_says_no_is_an_error() -> None:
    api = Replies(describe_availability_zones=AwsError("AuthFailure", "not enabled", 401))
    with pytest.raises(AwsError, match="not enabled"):
        read_region(api, "ap-east-1", frozenset(), now=NOW)


def test_a_type_is_told_in_our_columns() -> None:
    row = type_row(G9)
    assert row["words"] == "amd nvidia efa nvme"
    assert (row["gpu"], row["gpus"], row["gpu_mem_mib"]) == ("X980", 2.0, 81920)
    assert (row["cpus"], row["mem_mib"], row["tmp_mib"]) == (8, 32768, 429153)
