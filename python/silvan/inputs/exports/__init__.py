"""Fabrics in the formats of other programs: Slurm, topograph, OpenSM, ns-3, htsim and others."""
