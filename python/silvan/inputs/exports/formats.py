"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from silvan.errors import SilvanError, shown
from silvan.inputs.exports.cabling import Cabling
from silvan.inputs.exports.graphml import graphml
from silvan.inputs.exports.guids import cn_guids, root_guids
from silvan.inputs.exports.htsim import htsim
from silvan.inputs.exports.ns3 import ns3
from silvan.inputs.exports.slurm import slurm_block, slurm_tree
from silvan.inputs.exports.topograph import topograph

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario


class Format(StrEnum):
    """A format of another program."""

    CN_GUIDS = "cn-guids"
    GRAPHML = "graphml"
    HTSIM = "htsim"
    IBSIM = "ibsim"
    NS_3 = "ns-3"
    ROOT_GUIDS = "root-guids"
    SLURM_BLOCK = "slurm-block"
    SLURM_TREE = "slurm-tree"
    TOPOGRAPH = "topograph"


_WRITERS: dict[Format, Callable[[Cabling], str]] = {
    Format.CN_GUIDS: cn_guids,
    Format.GRAPHML: graphml,
    Format.HTSIM: htsim,
    Format.NS_3: ns3,
    Format.ROOT_GUIDS: root_guids,
    Format.SLURM_BLOCK: slurm_block,
    Format.SLURM_TREE: slurm_tree,
    Format.TOPOGRAPH: topograph,
}


def export(scenario: Scenario, name: str) -> str:
    """Write the fabric of a scenario, see :meth:`silvan.Scenario.export`."""
    if name not in list(Format):
        raise SilvanError(f"there is no format {shown(repr(name))}", f"use {', '.join(Format)}")
    chosen = Format(name)
    if chosen is Format.IBSIM:
        return scenario._native.ibsim_net()
    return _WRITERS[chosen](Cabling.of(scenario))
