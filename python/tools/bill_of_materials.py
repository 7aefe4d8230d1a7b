"""Write the software bill of materials of a release (CycloneDX 1.6, JSON)."""

from __future__ import annotations

import argparse
import base64
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ("silvan-python", "silvan-capi")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)")


def crates(root: Path) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Return the crates that a published library links, and the dependencies of each, by id."""
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    packages = {package["id"]: package for package in found["packages"]}
    links = {
        node["id"]: [
            one["pkg"]
            for one in node["deps"]
            if any(kind["kind"] is None for kind in one["dep_kinds"])
        ]
        for node in found["resolve"]["nodes"]
    }
    waiting = [one for one, package in packages.items() if package["name"] in ROOTS]
    linked: dict[str, list[str]] = {}
    while waiting:
        one = waiting.pop()
        if one not in linked:
            linked[one] = links[one]
            waiting += links[one]
    return [packages[one] for one in sorted(linked)], linked


def checksums(root: Path) -> dict[tuple[str, str], str]:
    """Return the SHA-256 of each crate from a registry, by name and version."""
    lock = tomllib.loads((root / "Cargo.lock").read_text("utf-8"))
    return {
        (package["name"], package["version"]): package["checksum"]
        for package in lock["package"]
        if "checksum" in package
    }


def pinned(root: Path) -> Iterator[tuple[str, str]]:
    """List the Python packages of requirements/run.txt."""
    for line in (root / "requirements" / "run.txt").read_text("utf-8").splitlines():
        if match := _PINNED.match(line):
            yield match[1], match[2]


def scripts(root: Path) -> Iterator[Component]:
    """List the JavaScript packages that are compiled into the viewer's page."""
    lock = json.loads((root / "viewer" / "package-lock.json").read_text("utf-8"))
    for place, package in lock["packages"].items():
        name = place.rpartition("node_modules/")[2]
        if not name or package.get("dev"):
            continue
        scope, _, bare = name.rpartition("/")
        kind, _, digest = package["integrity"].partition("-")
        assert kind == "sha512", name
        content = base64.b64decode(digest).hex()
        yield Component(
            name=name,
            version=package["version"],
            type=ComponentType.LIBRARY,
            bom_ref=f"npm:{name}@{package['version']}",
            purl=PackageURL("npm", namespace=scope or None, name=bare, version=package["version"]),
            licenses=_licences(package.get("license")),
            hashes=[HashType(alg=HashAlgorithm.SHA_512, content=content)],
        )


def bill(root: Path, version: str, moment: datetime) -> Bom:
    """Make the bill."""
    bom = Bom(serial_number=UUID(str(uuid5(NAMESPACE_URL, f"silvan {version} {moment}"))))
    bom.metadata.timestamp = moment
    product = Component(
        name="silvan",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref="silvan",
        purl=PackageURL("pypi", name="silvan", version=version),
        supplier=OrganizationalEntity(name="The silvan developers"),
        licenses=[LicenseExpression("MIT OR Apache-2.0")],
    )
    bom.metadata.component = product
    sums = checksums(root)
    packages, links = crates(root)
    components = {}
    for package in packages:
        name, of = package["name"], package["version"]
        digest = sums.get((name, of))
        components[package["id"]] = Component(
            name=name,
            version=of,
            type=ComponentType.LIBRARY,
            bom_ref=f"cargo:{name}@{of}",
            purl=PackageURL("cargo", name=name, version=of),
            licenses=_licences(package["license"]),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
        )
    for component in components.values():
        bom.components.add(component)
    for one, needed in links.items():
        bom.register_dependency(components[one], [components[other] for other in needed])
    tops = [components[one["id"]] for one in packages if one["name"] in ROOTS]
    pythons = [
        Component(
            name=name,
            version=of,
            type=ComponentType.LIBRARY,
            bom_ref=f"pypi:{name}@{of}",
            purl=PackageURL("pypi", name=name, version=of),
        )
        for name, of in pinned(root)
        if name != "maturin"
    ]
    others = [*pythons, *scripts(root)]
    for component in others:
        bom.components.add(component)
    bom.register_dependency(product, [*tops, *others])
    return bom


def _licences(text: str | None) -> list[LicenseExpression | DisjunctiveLicense]:
    return [LicenseExpression(text.replace("/", " OR "))] if text else []


def main() -> int:
    """Write the bill, and check it against the schema."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args()
    sys.path.insert(0, str(ROOT / "python" / "tools"))
    from versions import version

    show = ["git", "show", "--no-patch", "--format=%ct", "HEAD"]
    done = subprocess.run(show, cwd=ROOT, check=True, capture_output=True, text=True)
    moment = datetime.fromtimestamp(int(done.stdout), UTC)
    bom = bill(ROOT, version(), moment)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        print(f"error: the bill breaks the schema: {wrong}", file=sys.stderr)
        return 1
    chosen.file.write_text(text + "\n", "utf-8")
    print(f"{chosen.file}: {len(bom.components)} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())
