"""What follows from the configuration alone."""

from broker.model.site import Site, kept_for_site


def test_what_follows_from_a_site_is_made_once_until_there_is_another() -> None:
    made: list[Site] = []

    @kept_for_site
    def cluster(site: Site) -> str:
        made.append(site)
        return site.cluster

    first, alike, other = Site(), Site(), Site(cluster="other")
    found = [cluster(site) for site in (first, first, alike, alike, other, first)]
    assert found == ["skypurza"] * 4 + ["other", "skypurza"]
    assert list(map(id, made)) == list(map(id, (first, alike, other, first)))
