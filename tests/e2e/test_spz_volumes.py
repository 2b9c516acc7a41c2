"""`spz volumes` as a process: folders of this host where machines are folders too."""

import json

import pytest

from gateway.config.catalogs import Shelf
from gateway.sdk.client import Client
from tests.e2e.agents import until
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e
FILE = "name: data\ntype: k8s-pvc\nsize: 20Gi\nlabels: {team: nlp}\n"
TASK = """\
resources: {{cpus: 2}}
volumes: {{~/data: data}}
run: {run}
"""


def test_a_volume_outlives_the_clusters_that_use_it_and_is_billed_to_its_owner(
    spz: Terminal,
) -> None:
    made = spz("volumes", "apply", "-y", spz.file("data.yaml", FILE))
    assert (made.code, "Created volume data in " in made.out) == (0, True), made
    assert "type: k8s-pvc is a volume of EBS here" in made.err
    assert spz("volumes", "apply", "-y", "data.yaml").code == 0, "it is there"
    assert "keeps its size" in spz("volumes", "apply", "-y", "data.yaml", "--size", "30").err
    (told,) = spz.json("volumes", "ls")
    assert (told["status"], told["size"], told["usedby_clusters"]) == ("READY", 20, [])

    first = spz.file("first.yaml", TASK.format(run="echo kept > ~/data/note"))
    ran = spz("launch", "-y", "-c", "one", first)
    assert ran.code == 0, ran
    (told,) = spz.json("volumes", "ls", "data")
    assert (told["status"], told["usedby_clusters"]) == ("IN_USE", ["one"])
    assert "in use by one" in spz("volumes", "delete", "-y", "data").err
    assert spz("launch", "-d", "-y", "-c", "two", first).code == 0
    job = next(one for one in spz.json("status") if one["name"] == "two")
    assert "volume data is held by one" in spz("why", str(job["job"])).out

    (spz.home / "first.yaml").write_text(TASK.format(run="cat ~/data/note"))
    assert spz("down", "-y", "two").code == spz("down", "-y", "one").code == 0
    again = spz("launch", "-y", "-c", "three", "first.yaml")
    assert (again.code, again.out.splitlines()[-1]) == (0, "kept"), again
    assert spz("down", "-y", "three").code == 0
    until(lambda: not (spz.home / "data").is_symlink(), "the volume to be taken off")
    assert spz("volumes", "delete", "-y", "dat*").out == "Deleted volume data\n"
    assert spz.json("volumes", "ls") == []
    docs = spz.served.rows("select doc from ledger where doc like '%volume-data%'")
    entries = [json.loads(doc) for (doc,) in docs]
    assert sum(entry["cost"] for entry in entries) > 0
    assert {entry["job"] for entry in entries if entry.get("job")} == set()


def test_refreshed_rates_count_at_once(spz: Terminal) -> None:
    def price(name: str) -> int:
        assert spz("volumes", "apply", "-y", "--name", name, "--size", "73").code == 0
        rows = client.get("/v1/volumes")["volumes"]
        assert spz("volumes", "delete", "-y", name).code == 0
        return next(int(one["micro_usd_per_hour"]) for one in rows if one["name"] == name)

    shelf, client = Shelf(spz.served.home), Client(spz.served.socket)
    assert price("cheap") == 73 * 80_000 // 730
    document = shelf.document()
    gp3 = ["gp3", "", "", 800_000, "2027-01-01", "a test"]
    others = [row for row in document.get("rates", []) if row[0] != "gp3"]
    area = ["gp3", "us-east-1", *gp3[2:]]
    shelf.save({**document, "rates": [*others, gp3, area]})
    client.post("/v1/catalog/reload")
    assert price("dear") == 73 * 800_000 // 730
    shelf.file.unlink()
    client.post("/v1/catalog/reload")
    assert price("again") == 73 * 80_000 // 730


WRONG = (
    (("--name", "x", "--size", "10", "--infra", "k8s"), "infra: kubernetes is not served"),
    (("--name", "x", "--size", "10", "--type", "k8s-hostpath"), "type: k8s-hostpath: it is a "),
    (("--name", "x", "--size", "10", "--use-existing"), "are not taken up"),
    (("--name", "x"), "size: 1 to 16384 GB"),
    (("--size", "10"), "is no name of a volume"),
    (("--name", "x", "--size", "10", "--infra", "aws/us-nowhere-1"), "no machines are to be had"),
)


def test_what_is_no_volume_is_refused_with_the_way_out(spz: Terminal) -> None:
    for argv, told in WRONG:
        done = spz("volumes", "apply", "-y", *argv)
        assert (done.code, told in done.err) == (1, True), (argv, done)
    task = spz.file("t.yaml", TASK.format(run="echo"))
    assert "you have no volume 'data'" in spz("launch", "-y", "-c", "none", task).err
    assert "no volume nobodys" in spz("volumes", "ls", "nobodys").err
