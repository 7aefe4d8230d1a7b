"""Declarations of a plug-in package: schemes, topologies, traffic, routings and trace readers.

A package announces each plug-in by an entry point, whose name is the one that scenarios use::

    [project.entry-points."silvan.topologies"]
    hypercube = "my_package.topology:HYPERCUBE"
"""

from silvan.inputs.quantities import Quantity
from silvan.plugins.keys import Length, Rate, Size, Span
from silvan.plugins.kinds import Fabric, NoKeys, Routing, Scheme, Topology, Trace, Traffic

__all__ = [
    "Fabric",
    "Length",
    "NoKeys",
    "Quantity",
    "Rate",
    "Routing",
    "Scheme",
    "Size",
    "Span",
    "Topology",
    "Trace",
    "Traffic",
]
