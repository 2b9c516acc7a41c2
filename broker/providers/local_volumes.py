"""Volumes of the local provider: folders of this host, each its owner's. `broker.ports.Volumes`."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from broker.model.offer import Machine
from broker.model.volume import NamedVolume


class LocalVolumes:
    """Their size is not watched."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, volume: NamedVolume) -> str:
        place = self._place(volume)
        self._folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(place, volume.owner.uid, volume.owner.gid)
        return str(place)

    def drop(self, volume: NamedVolume) -> None:
        place = self._place(volume)
        if place.exists():
            shutil.rmtree(place)

    def attach(self, volume: NamedVolume, machine: Machine) -> None:
        """Every machine of this host sees it."""

    def detach(self, volume: NamedVolume) -> None:
        """Likewise."""

    def paths(self, volume: NamedVolume) -> Sequence[str]:
        return (volume.id,)

    def _place(self, volume: NamedVolume) -> Path:
        return self._folder / volume.key
