# Runs redis_exporter and Prometheus on a server, and evaluates every expression of packaging/redis/archive/monitoring:
# monitoring.py PEERS PORT FOLDER. FOLDER is for the files of Prometheus.

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import redis

PEERS, PORT, FOLDER = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
FILES = Path(__file__).resolve().parents[4] / "packaging/redis/archive/monitoring"
SECONDS = 120  # until something counts as not happening


def get(url):
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode()


@contextmanager
def running(name, ready, command):
    """Runs a program that listens on a free port; `ready` is the path that replies when it is ready. Yields its URL."""
    end = time.monotonic() + SECONDS
    while True:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % listener.getsockname()[1]
        log = FOLDER / f"{name}.log"
        with log.open("w") as out:
            process = subprocess.Popen(command(address), stdout=out, stderr=out, start_new_session=True)
        try:
            while process.poll() is None:
                try:
                    get(f"http://{address}{ready}")
                except OSError:
                    assert time.monotonic() < end, f"{name} does not reply: {log.read_text()}"
                    time.sleep(0.05)
                else:
                    yield f"http://{address}"
                    return
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # Another program took the port in the meantime.
        assert time.monotonic() < end, f"{name} ends: {log.read_text()}"


def exporter(address):
    return [
        PEERS / "bin/prometheus-redis-exporter",
        *("-redis.addr", f"redis://127.0.0.1:{PORT}", "-script", FILES / "petal.lua"),
        *("-web.listen-address", address),
    ]


def prometheus(target):
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "redis", "static_configs": [{"targets": [target]}]}],
    }
    (FOLDER / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    return lambda address: [
        PEERS / "bin/prometheus",
        *("--config.file", FOLDER / "prometheus.yml", "--storage.tsdb.path", FOLDER / "data"),
        *("--web.listen-address", address),
    ]


def traffic(server):
    """Calls commands of all three families; one of them fails."""
    for item in range(20):
        server.execute_command("BF.ADD", "bloom", item)
        server.execute_command("BF.EXISTS", "bloom", item)
        server.execute_command("CF.ADD", "cuckoo", item)
    server.execute_command("PETAL.SEEN", "window", "a")
    try:
        server.execute_command("PETAL.SEEN", "misspelt", "a")
    except redis.ResponseError:
        return
    raise AssertionError("no error")


def exported_values(url):
    """Returns the numbers that the script exports, by name."""
    lines = re.findall(r'^redis_script_values{key="(\w+)"} (\S+)$', get(f"{url}/metrics"), re.M)
    return {name: float(number) for name, number in lines}


def check_script(url, server):
    """The script exports every field of the module's section of INFO, and nothing else."""
    fields = server.info("petal")
    assert len(fields) >= 10, fields
    assert exported_values(url) == fields, (exported_values(url), fields)


def results(url, expression):
    query = urllib.parse.urlencode({"query": expression})
    reply = json.loads(get(f"{url}/api/v1/query?{query}"))
    assert reply["status"] == "success", (expression, reply)
    return reply["data"]["result"]


def expressions():
    """Returns the expressions of the dashboard as Grafana sends them."""
    panels = json.loads((FILES / "grafana.json").read_text())["panels"]
    found = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(found) > 15
    return [text.replace("$instance", ".*").replace("$__rate_interval", "1m") for text in found]


def check_dashboard(url, server):
    """Every expression has a result. One that names an unknown metric or label never has."""
    assert not results(url, 'rate(redis_script_values{key="petal_unknown"}[1m])')
    end, missing = time.monotonic() + SECONDS, expressions()
    while missing:
        assert time.monotonic() < end, f"no result: {missing}"
        traffic(server)
        missing = [text for text in missing if not results(url, text)]
        time.sleep(0.1)


def check_alerts(url):
    """The rules are valid, and neither of their metrics is missing."""
    rules = FILES / "alerts.yml"
    subprocess.run([PEERS / "bin/promtool", "check", "rules", rules], check=True, stdout=subprocess.DEVNULL)
    for name in set(re.findall(r"\bredis_\w+(?:{[^}]*})?", rules.read_text())) - {"redis_exporter"}:
        assert results(url, name), name


server = redis.Redis(port=PORT)
server.execute_command("PETAL.RESERVE", "window", 0.01, 100, "WINDOW", "7d")
traffic(server)
with running("exporter", "/metrics", exporter) as metrics:
    check_script(metrics, server)
    with running("prometheus", "/-/ready", prometheus(metrics.removeprefix("http://"))) as url:
        check_dashboard(url, server)
        check_alerts(url)
