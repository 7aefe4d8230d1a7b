"""The model of a network that NVIDIA's topograph simulates: switches of a tree, blocks of nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable

from silvan.inputs.exports.branches import trunk
from silvan.inputs.exports.cabling import Cabling


def topograph(fabric: Cabling) -> str:
    """Write the model in YAML; names are quoted as JSON quotes them, which YAML reads."""
    switches = ["# A model of topograph", "switches:"]
    blocks = ["blocks:"]
    branches = [trunk(fabric)]
    for branch in branches:
        branches += branch.children
        switches.append(f"  {json.dumps(branch.name)}:")
        switches.append(f"    switches: {_list(child.name for child in branch.children)}")
        if branch.computers:
            blocks.append(f"- switch: {json.dumps(branch.name)}")
            blocks.append(f"  nodes: {_list(branch.computers)}")
    return "\n".join([*switches, *blocks]) + "\n"


def _list(values: Iterable[str]) -> str:
    return json.dumps(list(values))
