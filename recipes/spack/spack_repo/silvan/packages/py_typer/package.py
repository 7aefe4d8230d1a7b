# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyTyper(PythonPackage):
    """Build command lines from Python type hints; Spack's own has no version 0.29 yet."""

    homepage = "https://typer.tiangolo.com"
    pypi = "typer/typer-0.29.2.tar.gz"

    license("MIT", checked_by="silvan")

    version("0.29.2", sha256="b1998dc5f2c3dedafa1517a9521fa944cc4dc1fadcea085d81a3b10ebcaeb075")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-pdm-backend", type="build")
    depends_on("py-annotated-doc@0.0.2:", type=("build", "run"))
    depends_on("py-pydantic@2.5.3:", type=("build", "run"))
    depends_on("py-rich@13.8:", type=("build", "run"))
    depends_on("py-shellingham@1.3:", type=("build", "run"))
