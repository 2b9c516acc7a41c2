"""Requests by the id that they were sent under."""

from gateway.sdk.client import Client, Json


def cancel(service: Client, request: str) -> Json:
    """Ends what was asked for: a job, or one run of a cluster; what it had become. Raises Told."""
    told: Json = service.get(f"/v1/requests/{request}")
    if told["run"] is None or not told["cluster"]:
        service.persist(f"/v1/jobs/{told['job']}/cancel")
    else:
        service.persist(f"/v1/clusters/{told['cluster']}/cancel", run=told["run"])
    return told
