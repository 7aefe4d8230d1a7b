"""Run unmodified programs in a live fabric, and print whether each sees it as it is."""

from __future__ import annotations

import ipaddress
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

import sa_client
from pmda_client import PmdaClient

from silvan.child_processes import ends_with_parent
from silvan.inputs.scenario import Scenario
from silvan.live.emulation import Emulation
from silvan.live.live_programs import attached, opensm, wait_for
from silvan.live.opensm_routing import opensm_tables, route
from silvan.testing import RunningFabric

FABRIC = """\
name = "check-tools"

[fabric]
switch = [{ name = "left", ports = 8 }, { name = "right", ports = 8 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "left:2" },
    { from = "c", to = "right:1" },
    { from = "d", to = "right:2" },
    { from = "left:5", to = "right:6" },
]
routing = "min-hop"

[packet]
mtu = "2 KiB"

[vl]
data-vls = 8
"""
CABLES = {
    ("a", 1, "left", 1),
    ("b", 1, "left", 2),
    ("c", 1, "right", 1),
    ("d", 1, "right", 2),
    ("left", 5, "right", 6),
}
ENDS = CABLES | {(far, far_port, near, port) for near, port, far, far_port in CABLES}
NAMES = ["a", "b", "c", "d", "left", "right"]
PACKETS = 10
WORDS = PACKETS * (2048 + 26 - 2) // 4
"""A message of 20 KiB: payload and headers of its packets without the VCRC, in words."""
LIST_DEVICES = "import pyverbs.device as d; print([x.name for x in d.get_device_list()])"
TREE = """\
name = "check-tools-tree"

[fabric]
generator = "k-ary-n-tree"
k = 3
n = 2

[vl]
data-vls = 8
"""
TORUS = """\
name = "check-tools-torus"

[fabric]
generator = "torus"
sizes = [3, 3]
hosts-per-switch = 1
routing = "none"

[vl]
data-vls = 8
"""
ENGINES = ("minhop", "updn", "dnup", "dor", "lash", "sssp", "dfsssp", "nue")
SMKEY = "1"
"""OpenSM's default trusted key: others get no P_Keys, and no ports of members."""
PMDAIB = "/usr/lib/pcp/pmdas/infiniband/pmdaib"
DEADLINE_S = 60

Rows = list[tuple[str, str]]


class Checks:
    """The table, and the fabric that its programs see."""

    def __init__(self) -> None:
        self.rows: Rows = []

    def cell(self, name: str, check: Callable[[], object], *, known: str | None = None) -> None:
        """Add the outcome of a check, which returns whether the program is right."""
        try:
            outcome = "FAIL: differs from the fabric" if not check() else "pass"
        except subprocess.TimeoutExpired:
            outcome = f"FAIL: no end after {DEADLINE_S} s"
        except Exception as error:
            outcome = f"FAIL: {error}"
        if known is not None and outcome == "pass":
            outcome = f"known difference: {known}"
        self.rows.append((name, outcome))


def check_tools(checks: Checks, running: RunningFabric) -> None:
    """Check the tools that query a fabric with a subnet manager at host d."""
    lids = {node["name"]: node["lid"] for node in running.control("fabric")["nodes"]}

    def text(*words: str, host: str = "a") -> str:
        if re.match(r"ib(?:link|net|query)|perfquery|saquery|sminfo|smpquery", words[0]):
            words = (words[0], "--timeout", "20000", *words[1:])
        return running.run(*words, host=host, timeout_s=DEADLINE_S).stdout

    def values(*words: str) -> dict[str, str]:
        return dict(re.findall(r"^(\w+):\.+(.*)$", text(*words), re.MULTILINE))

    def counted(*options: str) -> bool:
        sent = values("perfquery", *options, str(lids["a"]), "1")
        received = values("perfquery", *options, str(lids["c"]), "1")
        return [sent["PortXmitPkts"], received["PortRcvPkts"]] == [str(PACKETS)] * 2 and [
            sent["PortXmitData"],
            received["PortRcvData"],
        ] == [str(WORDS)] * 2

    def counted_everywhere() -> bool:
        sent, received = (
            {("a", 1), ("left", 5), ("right", 1)},
            {("left", 1), ("right", 6), ("c", 1)},
        )
        name, found = "", set()
        for line in text("ibqueryerrors", "--counters").splitlines():
            if heading := re.match(r'Data Counters for \w+ "(\w+)"', line):
                name = heading[1]
            elif port := re.match(r"   GUID \w+ port (\d+):", line):
                fields = dict(re.findall(r"\[(\w+) == (\d+) ", line))
                for way, ends in (("Xmit", sent), ("Rcv", received)):
                    end = (name, int(port[1]))
                    expected = (PACKETS, WORDS) if end in ends else (0, 0)
                    if (int(fields[f"Port{way}Pkts"]), int(fields[f"Port{way}Data"])) != expected:
                        return False
                    found.add(end)
        return found >= sent | received

    def discovered() -> bool:
        pattern = r"\s(\d+)\s+(\d+) 0x\w+ 4x .* - \w+\s+\d+\s+(\d+) 0x\w+ \( '(\w+)' - '(\w+)' \)"
        found = re.findall(pattern, text("ibnetdiscover", "-p"))
        ends = {(name, int(port), far, int(far_port)) for _, port, far_port, name, far in found}
        return ends == ENDS and all(int(lid) == lids[name] for lid, _, _, name, _ in found)

    def linked() -> bool:
        end = r'"\s*(\w+)"\s+(\d+)\s+(\d+)\[.*Active/\s+LinkUp'
        pattern = end + r'\)==>\s+\w+\s+(\d+)\s+(\d+)\[.*"\s*(\w+)"'
        found = re.findall(pattern, text("iblinkinfo", "-l"))
        ends = {(name, int(port), far, int(far_port)) for name, _, port, _, far_port, far in found}
        right = all((int(x[1]), int(x[3])) == (lids[x[0]], lids[x[5]]) for x in found)
        return ends == ENDS and right

    def status(words: str, lid: str) -> bool:
        shown = text(words)
        return lid in shown and "active" in shown.lower()

    def links_of_sa() -> bool:
        found = re.findall(
            r"FromLID\.+(\d+)\s+FromPort\.+(\d+)\s+ToPort\.+(\d+)\s+ToLID\.+(\d+)",
            text("saquery", "-x"),
        )
        ends = {(lids[n], p, lids[f], q) for n, p, f, q in ENDS}
        return {(int(n), int(p), int(f), int(q)) for n, p, q, f in found} == ends

    def tables() -> bool:
        switches = re.split(r"^Unicast lids", text("dump_lfts"), flags=re.MULTILINE)[1:]
        found = {
            (re.findall(r"guid \w+ \((\w+)\)", part)[0], name): int(port)
            for part in switches
            for port, name in re.findall(r"^0x\w+ (\d+) : \(.*'(\w+)'\)$", part, re.MULTILINE)
        }
        near = {(switch, host): port for host, _, switch, port in CABLES if host in "abcd"}
        far = {("left", name): 5 for name in ("c", "d", "right")}
        far |= {("right", name): 6 for name in ("a", "b", "left")}
        own = {("left", "left"): 0, ("right", "right"): 0}
        return found == near | far | own

    def pinged() -> bool:
        words = ("ibping", "-c", "1", str(lids["c"]))
        if "0 received" not in running.run(*words, check=False, timeout_s=DEADLINE_S).stdout:
            return False
        with attached(running.emulation, running.folder, ["ibping", "-S"], host="c"):
            wait_for(
                lambda: "1 received" in running.run(*words, check=False).stdout,
                "ibping has no answer",
                DEADLINE_S,
            )
        return True

    def records() -> bool:
        expected: dict[str, Callable[[str], bool]] = {
            "LFTR": lambda shown: shown.count("LFT Record dump") == 2,
            "PIR": lambda shown: len(set(re.findall(r"EndPortLid\.+(\d+)", shown))) == len(NAMES),
            "SWIR": lambda shown: shown.count("SwitchInfoRecord dump") == 2,
            "SL2VL": lambda shown: "SL2VL" in shown,
            "VLAR": lambda shown: "VLArb" in shown,
            "GIR": lambda shown: shown.count("GUIDInfo Record dump") >= len(NAMES),
            "CPI": lambda shown: "SA ClassPortInfo" in shown,
        }
        return all(right(text("saquery", kind)) for kind, right in expected.items())

    def register(host: str, *what: str) -> None:
        program = Path(sa_client.__file__)
        running.run("/usr/bin/python3", program, *what, host=host, timeout_s=DEADLINE_S)

    def gid(host: str) -> str:
        """Return the GID of a host as saquery prints it: fe80::, then the port's GUID."""
        path = "/sys/class/infiniband/silvan0/ports/1/gids/0"
        shown = running.run("/usr/bin/python3", "-c", f"print(open({path!r}).read())", host=host)
        return str(ipaddress.IPv6Address(shown.stdout.strip()))

    def partitions() -> bool:
        pattern = r"LID\.+(\d+)\s+Port\.+(\d+)\s+Block\.+0\s+PKey Table:\s+((?:0x\w{4} ?)+)\n"
        found = re.findall(pattern, text("saquery", "--smkey", SMKEY, "PKTR"))
        tables = {(int(lid), int(port)): keys.split() for lid, port, keys in found}
        hosts = {(lids[host], 1) for host in "abcd"}
        return hosts <= set(tables) and all(
            keys == ["0xffff"] + ["0x0000"] * 7 for keys in (tables[host] for host in hosts)
        )

    def refused() -> bool:
        shown = running.run("saquery", "PKTR", check=False, timeout_s=DEADLINE_S)
        return "SA_ERR_REQ_INVALID" in shown.stdout + shown.stderr

    def service() -> bool:
        before = text("saquery", "SR")
        register("a", "service")
        found = dict(re.findall(r"(Service\w+)\.+(\S+)", text("saquery", "SR")))
        return not before and (
            int(found["ServiceID"], 16),
            found["ServiceGID"],
            found["ServiceName"],
            int(found["ServiceLease"], 16),
        ) == (sa_client.SERVICE_ID, gid("a"), sa_client.SERVICE_NAME, sa_client.LEASE_S)

    def subscription() -> bool:
        before = text("saquery", "IIR")
        register("a", "subscription")
        found = re.findall(r"SubscriberGID\.+(\S+)", text("saquery", "IIR"))
        return not before and found == [gid("a")]

    def members() -> bool:
        def found() -> set[str]:
            shown = text("saquery", "--smkey", SMKEY, "MCMR")
            return set(re.findall(r"PortGid\.+(\S+)", shown))

        before = found()
        for host in "ac":
            register(host, "member")
        return before <= {"::"} and found() == {gid("a"), gid("c")}

    def multicast() -> bool:
        """Compare with the only tree of a and c: their ports, and the cable in between."""
        expected = {lids["left"]: 1 << 1 | 1 << 5, lids["right"]: 1 << 1 | 1 << 6}

        def found() -> dict[int, int]:
            shown = text("saquery", "MFTR")
            masks = re.findall(r"LID\.+(\d+)\s.*?0xc000\s+0x(\w+)", shown, re.DOTALL)
            return {int(lid): int(mask, 16) for lid, mask in masks}

        # OpenSM sets the tables after its answer to the members.
        wait_for(lambda: found() == expected, "the tables lack the members", DEADLINE_S)
        return True

    def agent_of_pcp() -> bool:
        process = subprocess.Popen(
            [PMDAIB, "-d", "91", "-l", str(running.folder / "pmdaib.log")],
            env=running.environment("a"),
            cwd=running.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=ends_with_parent(),
        )
        timer = threading.Timer(DEADLINE_S, process.kill)
        timer.start()
        with PmdaClient(process, 91) as agent:
            found = agent.fetch([(0, 9), (0, 10), (1, 2), (1, 3)])
        timer.cancel()
        sent = [value.to_bytes(8, "big") for value in (4 * WORDS, PACKETS)]
        return found == [
            [lids["a"].to_bytes(4, "big")],
            [b"Active\0"],
            *([value] for value in sent),
        ]

    def osmtest() -> bool:
        text("osmtest", "-f", "c", "-i", "osmtest.dat")
        validated = running.run("osmtest", "-f", "a", "-i", "osmtest.dat", timeout_s=DEADLINE_S)
        return 'TEST "All Validations" PASS' in validated.stdout

    def exported() -> bool:
        words = ["prometheus-node-exporter", "--collector.disable-defaults"]
        words += ["--collector.infiniband", "--web.listen-address=127.0.0.1:0"]
        process = running.popen(*words, mount=True)
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            found = (re.search(r"Listening on.*address=(\S+)", line) for line in lines)
            address = next(match[1] for match in found if match)
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=DEADLINE_S) as page:
                shown = page.read().decode()
        finally:
            process.kill()
            process.communicate()
        name = r"node_infiniband_(\w+)\{device=\"silvan0\",port=\"1\"\} (\S+)"
        metrics = {key: float(value) for key, value in re.findall(name, shown)}
        return (
            metrics["port_data_transmitted_bytes_total"] == WORDS * 4
            and metrics["port_packets_transmitted_total"] == PACKETS
            and metrics["state_id"] == 4
            and metrics["physical_state_id"] == 5
        )

    def collected() -> bool:
        folder = running.folder / "collectd"
        folder.mkdir()
        config = folder / "collectd.conf"
        config.write_text(
            'Hostname "node"\nFQDNLookup false\nInterval 1\n'
            "LoadPlugin infiniband\nLoadPlugin csv\n"
            f'<Plugin csv>\nDataDir "{folder}/data"\nStoreRates false\n</Plugin>\n'
        )
        words = ["collectd", "-f", "-C", str(config), "-P", str(folder / "pid")]
        process = running.popen(*words, mount=True)

        def value(kind: str) -> float | None:
            """Return what the first whole line after the heading has."""
            files = [*folder.glob(f"data/*/infiniband-silvan0:1/{kind}-*")]
            lines = files[0].read_text().split("\n")[1:-1] if files else []
            return float(lines[0].split(",")[1]) if lines else None

        kinds = ("ib_state", "ib_lid")
        try:
            wait_for(
                lambda: None not in [value(kind) for kind in kinds],
                "collectd does not write the port's state and LID",
                DEADLINE_S,
            )
        finally:
            process.kill()
            process.communicate()
        return [value(kind) for kind in kinds] == [4, lids["a"]]

    def named(*words: str) -> list[str]:
        pattern = r'(?:NodeDescription\.+|")(\w+)"?$'
        return sorted(re.findall(pattern, text(*words), re.MULTILINE))

    trace = str(lids["a"]), str(lids["c"])
    checks.cell("ibstat", lambda: status("ibstat", f"Base lid: {lids['a']}\n"))
    checks.cell("ibstatus", lambda: status("ibstatus", f"\t 0x{lids['a']:x}\n"))
    checks.cell("ibv_devinfo", lambda: status("ibv_devinfo", f"port_lid:\t\t{lids['a']}\n"))
    checks.cell("ibnetdiscover -p", discovered)
    checks.cell("iblinkinfo -l", linked)
    checks.cell("perfquery", counted)
    checks.cell("perfquery -x", lambda: counted("-x"))
    checks.cell("ibqueryerrors --counters", counted_everywhere)
    checks.cell("saquery", lambda: named("saquery") == NAMES)
    checks.cell("saquery -N", lambda: named("saquery", "-N") == NAMES)
    checks.cell(
        "saquery -D",
        lambda: (
            sorted(re.findall(r'^ +(\d+)  "(\w+)"$', text("saquery", "-D"), re.MULTILINE))
            == sorted((str(lids[host]), host) for host in "abcd")
        ),
    )
    checks.cell("saquery -x", links_of_sa)
    checks.cell(
        "saquery -p",
        lambda: re.search(
            rf"dlid\.+{lids['c']}\n", text("saquery", "-p", "--src-to-dst", ":".join(trace))
        ),
    )
    checks.cell("saquery CPI, PIR, SWIR, LFTR, SL2VL, VLAR, GIR", records)
    checks.cell("saquery --smkey 1 PKTR", partitions)
    checks.cell("saquery PKTR", refused, known="OpenSM gives P_Keys to trusted requests only")
    checks.cell("saquery SR", service)
    checks.cell("saquery IIR", subscription)
    checks.cell("saquery --smkey 1 MCMR", members)
    checks.cell("saquery MFTR", multicast)
    checks.cell("sminfo", lambda: f"sm lid {lids['d']} " in text("sminfo"))
    checks.cell(
        "ibtracert",
        lambda: (
            re.findall(r'"(\w+)"', text("ibtracert", *trace)) == ["a", "left", "right", "c", "c"]
        ),
    )
    checks.cell("dump_lfts", tables)
    checks.cell("smpquery nodedesc", lambda: "..c" in text("smpquery", "nodedesc", str(lids["c"])))
    checks.cell("ibping", pinged)
    checks.cell("osmtest", osmtest)
    checks.cell("prometheus-node-exporter --collector.infiniband (Go)", exported)
    checks.cell("collectd, plugin infiniband", collected)
    checks.cell("pcp-pmda-infiniband (pmdaib)", agent_of_pcp)
    checks.cell(
        "pyverbs, get_device_list",
        lambda: "silvan0" in text("/usr/bin/python3", "-c", LIST_DEVICES),
    )


def check_opensm(checks: Checks, folder: Path) -> None:
    """Check OpenSM's routing engines, each in a fabric that nothing has set up."""

    def brings_up(engine: str) -> bool:
        options = ("-Q",) if engine in {"dfsssp", "nue"} else ()
        with fabric(f"check-tools-{engine}", blank=True) as emulation:
            running = RunningFabric(emulation, folder)
            log = folder / f"{engine}.log"
            words = ("opensm", "-o", "-R", engine, "-f", str(log), *options)
            running.run(*words, host="d", timeout_s=DEADLINE_S)
            lines = log.read_text(errors="replace")
            status = emulation.control("status")
            up = "SUBNET UP" in lines and "fall" not in lines.lower()
            return up and not status["ports_not_active"]

    for engine in ENGINES:
        checks.cell(f"opensm -R {engine}", partial(brings_up, engine))

    def routed(engine: str, text: str) -> bool:
        """Check that OpenSM's routes by this engine connect all hosts, and cannot deadlock."""
        return bool(route(Scenario.from_toml(text), engine))

    checks.cell("opensm -R ftree, a fat tree", lambda: routed("ftree", TREE))
    checks.cell("opensm -R torus-2QoS, a torus", lambda: routed("torus-2QoS", TORUS))

    def from_file() -> bool:
        """Compare tables with those of the file, which differ from OpenSM's own."""
        tree = Scenario.from_toml(TREE)
        tables = folder / "tables.lfts"
        tables.write_text(opensm_tables(tree, "updn"))
        read = opensm_tables(tree, "file", ["-U", str(tables)])
        return read == tables.read_text() != opensm_tables(tree, "minhop")

    checks.cell("opensm -R file", from_file)

    def configured(
        name: str, options: str, right: Callable[[RunningFabric, list[int]], bool]
    ) -> bool:
        """Check that OpenSM sets what its configuration has at each switch."""
        with fabric(f"check-tools-{name}", blank=True) as emulation:
            running = RunningFabric(emulation, folder)
            config, log = folder / f"{name}.conf", folder / f"{name}.log"
            config.write_text(options)
            running.run(
                "opensm", "-o", "--config", config, "-f", log, host="d", timeout_s=DEADLINE_S
            )
            nodes = emulation.control("fabric")["nodes"]
            switches = [node["lid"] for node in nodes if node["name"] in {"left", "right"}]
            return "SUBNET UP" in log.read_text(errors="replace") and right(running, switches)

    def marks(running: RunningFabric, switches: list[int]) -> bool:
        for lid in switches:
            shown = running.run("ibccquery", "SwitchCongestionSetting", str(lid)).stdout
            setting = dict(re.findall(r"^(\w+):\.+(.*)$", shown, re.MULTILINE))
            if (int(setting["Threshold"], 16), setting["Marking_Rate"]) != (12, "32"):
                return False
        return True

    def maps(running: RunningFabric, switches: list[int]) -> bool:
        lanes = "|".join(f"{sl % 4:2}" for sl in range(16))
        shown = [running.run("smpquery", "sl2vl", str(lid), "1").stdout for lid in switches]
        return all(lanes in text for text in shown)

    manager = "congestion_control TRUE\ncc_sw_cong_setting_control_map 0x1f\n"
    manager += "cc_sw_cong_setting_threshold 0x0c\ncc_sw_cong_setting_marking_rate 0x0020\n"
    checks.cell("opensm, manager of congestion control", lambda: configured("cc", manager, marks))
    lanes = ",".join(str(sl % 4) for sl in range(16))
    quality = f"qos TRUE\nqos_max_vls 4\nqos_sl2vl {lanes}\n"
    checks.cell("opensm, quality of service", lambda: configured("qos", quality, maps))

    def handover() -> bool:
        with fabric("check-tools-two", blank=True) as emulation:
            running = RunningFabric(emulation, folder)
            lids: dict[str, int] = {}

            def has_master(host: str) -> bool:
                lids.update((x["name"], x["lid"]) for x in emulation.control("fabric")["nodes"])
                shown = running.run("sminfo", host="b", check=False, timeout_s=60).stdout
                return f"sm lid {lids[host]} " in shown and "MASTER" in shown

            options = folder / "two.conf"
            options.write_text("sminfo_polling_timeout 500\npolling_retry_number 2\n")
            words = ["opensm", "--config", str(options), "-f", str(folder / "two.log"), "-p"]
            first = attached(emulation, folder, [*words, "3"], host="a", stderr=subprocess.DEVNULL)
            with first:
                wait_for(lambda: has_master("a"), "host a manages nothing", DEADLINE_S)
                words[4] = str(folder / "three.log")
                second = attached(
                    emulation, folder, [*words, "14"], host="d", stderr=subprocess.DEVNULL
                )
                with second:
                    wait_for(lambda: has_master("d"), "no handover to host d", DEADLINE_S)
                wait_for(lambda: has_master("a"), "host a does not take over", DEADLINE_S)
        return True

    checks.cell("opensm, two with handover", handover)


def fabric(name: str, *, blank: bool = False) -> Emulation:
    """Start the fabric."""
    return Emulation(Scenario.from_toml(FABRIC), sockname=name, blank=blank)


def main() -> int:
    """Print the table."""
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="silvan-tools-") as name:
        folder = Path(name)
        with fabric("check-tools") as emulation, opensm(emulation, folder, host="d"):
            emulation.control("start", **{"from": "a"}, to="c", bytes="20480 B")
            wait_for(
                lambda: emulation.control("status")["delivered_bytes"] >= PACKETS * 2048,
                "the message has not arrived",
            )
            check_tools(checks, RunningFabric(emulation, folder))
        check_opensm(checks, folder)
    passed = [program for program, outcome in checks.rows if outcome == "pass"]
    print("These pass:\n")
    for name, programs in groupby(passed, key=lambda program: program.split()[0].strip(",")):
        first, *others = programs
        rest = (other.removeprefix(f"{name} ") for other in others)
        print("-", ", ".join(f"`{one}`" for one in (first, *rest)))
    print("\n| program | outcome |\n|---|---|")
    for program, outcome in checks.rows:
        if outcome != "pass":
            print(f"| `{program}` | {outcome} |")
    return int(any(outcome.startswith("FAIL") for _, outcome in checks.rows))


if __name__ == "__main__":
    sys.exit(main())
