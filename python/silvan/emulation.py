"""The live fabric: a scenario that real InfiniBand tools use as if it were hardware."""

from silvan.live.emulation import (
    ControlChannel,
    Emulation,
    control,
    is_attached,
    preload_library,
    umad2sim_library,
)

__all__ = [
    "ControlChannel",
    "Emulation",
    "control",
    "is_attached",
    "preload_library",
    "umad2sim_library",
]
