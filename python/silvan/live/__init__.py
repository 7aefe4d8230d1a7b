"""Live fabrics and real subnets: emulation, programs attached to it, diagnosis."""
