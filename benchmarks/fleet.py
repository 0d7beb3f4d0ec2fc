"""A Prometheus that scrapes 1,000 hosts: series, memory, and what each panel's query takes, with the recording rules.

The hosts are synthetic: one server answers for all of them, with the metrics of a job of some functions whose counters
grow. Prometheus, the rules and the dashboards are the real ones. Needs the program ``prometheus``.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from benchmarks.scrape import busy
from jaxwatch._build import Build
from jaxwatch._bundle import bundle
from jaxwatch.metrics import Collector

HOSTS = 1_000
FUNCTIONS = 5
SCRAPE_SECONDS = 15
_POINTS = 240  # of a panel: an hour at 15 s
_DIVERGENT = 7  # the host whose programs are others


@dataclass(frozen=True, slots=True)
class Panel:
    """What one panel's queries take together."""

    dashboard: str
    title: str
    seconds: float
    failed: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """What Prometheus needs for so many hosts."""

    hosts: int
    series_of_a_host: int
    head_series: int
    resident_megabytes: float
    rules_seconds: float  # of one evaluation of all recording rules
    samples_per_second: float
    panels: tuple[Panel, ...]

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool) -> Fleet:
    """Run a Prometheus for some minutes, and ask it what the dashboards ask.

    Raises:
        SystemExit: There is no Prometheus.
    """
    program = shutil.which("prometheus")
    if program is None:
        raise SystemExit("the section fleet needs prometheus: apt-get install prometheus")
    hosts, seconds, every = (50, 40, 2) if quick else (HOSTS, 420, SCRAPE_SECONDS)
    series = _template()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = stack.enter_context(_hosts(series, hosts))
        address, process = stack.enter_context(_prometheus(program, folder, port, hosts, every))
        time.sleep(seconds)
        return Fleet(
            hosts=hosts,
            series_of_a_host=len(series),
            head_series=int(_value(address, "prometheus_tsdb_head_series")),
            resident_megabytes=_resident(process.pid),
            rules_seconds=_value(address, "sum(prometheus_rule_group_last_duration_seconds)"),
            samples_per_second=_value(address, "rate(prometheus_tsdb_head_samples_appended_total[1m])"),
            panels=tuple(_panels(address, seconds)),
        )


# ------------------------------------------------------------------ the hosts


def _template() -> list[tuple[str, float, bool]]:
    """Return the series of a host: name with labels, value, and whether it grows."""
    registry, alive = busy(FUNCTIONS)
    exposed = CollectorRegistry()
    build = Build("0.1.0", "0.10.2", "0.10.2", "tpu", "native", "RANK")
    exposed.register(Collector(registry.snapshot, builds=lambda: (build,)))
    found, grows = [], False
    for line in generate_latest(exposed).decode().splitlines():
        if line.startswith("# TYPE"):
            grows = not line.endswith("gauge")
        elif not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found.append((name, float(value), grows))
    for n in range(FUNCTIONS):
        which = f'function="step_{n}",signature="s{n}"'
        found.append((f'jaxwatch_program_info{{fingerprint="FINGERPRINT",{which}}}', 1.0, False))
        found.append((f'jaxwatch_signature_info{{abstract="(x: float32[{n}])",{which}}}', 1.0, False))
        found.append((f"jaxwatch_signature_cache_misses_total{{{which}}}", 3.0, True))
    found.append(('jaxwatch_eager_compiles_total{site="train.py:7"}', 60.0, True))
    found.append(('jaxwatch_eager_compile_seconds_total{site="train.py:7"}', 6.0, True))
    del alive
    return found


@contextlib.contextmanager
def _hosts(series: list[tuple[str, float, bool]], hosts: int) -> Iterator[int]:
    started = time.monotonic()
    texts = {
        host: [
            (
                name.replace("RANK", str(host)).replace("FINGERPRINT", "other" if host == _DIVERGENT else "same"),
                value,
                grows,
            )
            for name, value, grows in series
        ]
        for host in range(hosts)
    }

    class Host(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            factor = 1 + (time.monotonic() - started) / 60
            lines = texts[int(self.path.rpartition("/")[2])]
            body = "".join(
                f"{name} {int(value * factor) if grows else value}\n" for name, value, grows in lines
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Host)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


# ------------------------------------------------------------------ Prometheus


@contextlib.contextmanager
def _prometheus(
    program: str, folder: Path, port: int, hosts: int, every: int
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        own = free.getsockname()[1]
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"__metrics_path__": f"/{host}", "instance": f"host{host}:9464"}}
        for host in range(hosts)
    ]
    (folder / "targets.json").write_text(json.dumps(targets))
    config = {
        "global": {"scrape_interval": f"{every}s", "evaluation_interval": f"{every}s"},
        "rule_files": [str(bundle() / "rules" / "*.yml")],
        "scrape_configs": [
            {"job_name": "pretrain", "file_sd_configs": [{"files": [str(folder / "targets.json")]}]},
            {"job_name": "prometheus", "static_configs": [{"targets": [f"127.0.0.1:{own}"]}]},
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    options = (
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{own}",
        "--log.level=error",
    )
    with subprocess.Popen([program, *options]) as running:  # noqa: S603 -- the program that was asked for
        try:
            yield f"http://127.0.0.1:{own}", running
        finally:
            running.terminate()
            running.wait(60)


def _ask(address: str, path: str, **arguments: str) -> Any:
    url = f"{address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    with urllib.request.urlopen(url, timeout=120) as answer:  # noqa: S310 -- our own Prometheus
        return json.load(answer)["data"]["result"]


def _value(address: str, query: str) -> float:
    found = _ask(address, "query", query=query)
    return float(found[0]["value"][1]) if found else float("nan")


def _resident(pid: int) -> float:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


# ------------------------------------------------------------------ the panels


def _panels(address: str, seconds: int) -> Iterator[Panel]:
    now = time.time()
    start, step = now - seconds, max(1.0, seconds / _POINTS)
    for path in sorted((bundle() / "dashboards").glob("*.json")):
        board = json.loads(path.read_text("utf-8"))
        rows = [panel for panel in board["panels"] if panel["type"] != "row"]
        folded = itertools.chain.from_iterable(p.get("panels", []) for p in board["panels"])
        for panel in [*rows, *folded]:
            if panel["type"] == "text":
                continue
            begun, failed = time.perf_counter(), ""
            for target in panel["targets"]:
                failed = failed or _asked(address, target, _chosen(path.stem), (start, now, step))
            yield Panel(path.stem, panel["title"], time.perf_counter() - begun, failed)


def _chosen(dashboard: str) -> dict[str, str]:
    """Return the values of a dashboard's variables: all that can be chosen, where several can."""
    return {"job": ".*", "instance": ".*", "function": "step_1" if dashboard == "function" else ".*", "raw": "-"}


def _asked(address: str, target: dict[str, Any], chosen: dict[str, str], times: tuple[float, float, float]) -> str:
    """Ask one query of a panel; return what is wrong."""
    start, now, step = times
    windows = {"__range": f"{int(now - start)}s", "__rate_interval": "1m", "__interval": f"{max(1, int(step))}s"}
    query = re.sub(r"\$\{?(\w+)\}?", lambda found: (chosen | windows).get(found[1], found[0]), target["expr"])
    try:
        if target["instant"]:
            found = _ask(address, "query", query=query, time=f"{now}")
        else:
            found = _ask(address, "query_range", query=query, start=f"{start}", end=f"{now}", step=f"{step}")
    except OSError as error:
        return str(error)
    return "" if found else "no data"
