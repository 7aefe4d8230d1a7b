# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PySilvan(PythonPackage):
    """Simulate, emulate and manage congestion in lossless networks, packet by packet."""

    pypi = "silvan/silvan-1.0.0.tar.gz"

    license("MIT OR Apache-2.0", checked_by="silvan")

    # The sum of the sdist on the index: make release prints it in SHA256SUMS.
    version("1.0.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("figures", default=True, description="Figures with matplotlib")
    variant("schemes", default=False, description="Congestion-control schemes in Python")
    variant("tune", default=False, description="Searches for settings")
    variant("cluster", default=False, description="Sweeps on Dask")
    variant("twin", default=False, description="Twin of a real subnet")
    variant("live", default=False, description="Pages of live fabrics")

    depends_on("c", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-maturin@1.9.4:1", type="build")
    depends_on("rust@1.85:", type="build")

    depends_on("py-numpy@2:", type=("build", "run"))
    depends_on("py-pyarrow@17:", type=("build", "run"))
    # From version 17 on, pyarrow has what arrow has.
    depends_on("arrow +compute +parquet +snappy +zstd", type="run")
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-typer@0.29:", type=("build", "run"))

    with when("+figures"):
        depends_on("py-matplotlib@3.9:", type=("build", "run"))
        depends_on("py-pillow@11:", type=("build", "run"))
    with when("+schemes"):
        depends_on("py-numba@0.61:", type=("build", "run"))
    with when("+tune"):
        depends_on("py-optuna@4.2:", type=("build", "run"))
    with when("+cluster"):
        depends_on("py-distributed@2025.1:", type=("build", "run"))
        depends_on("py-dask-jobqueue@0.9:", type=("build", "run"))
    with when("+twin"):
        depends_on("py-scipy@1.14:", type=("build", "run"))
    with when("+live"):
        depends_on("py-websockets@15:", type=("build", "run"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        with working_dir("spack-test", create=True):
            silvan = Executable(join_path(self.prefix.bin, "silvan"))
            silvan("example", "incast")
            silvan("run", "incast.toml")
