"""Benchmarks of the simulator, of sweeps, of the live fabric and of the DCMS."""
