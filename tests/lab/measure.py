"""One measured run of the lab: real daemons in shaped namespaces replay gradients, and what they end with is checked.

The bound that a step is compared with: a node sends its codes to the N-1 others (direct), or (N-1)/N of its codes and of
the sums (sharded); each at the entropy that the run's own codes and sums have, counted segment by segment by the plain
reference, over a link that carries 941/1000 of its rate. Nothing that sends these values one step at a time can be faster. Beside
it stands what plain TCP takes for as many bytes between the same nodes (plain_tcp.py).
"""

import json
import os
import pathlib
import statistics
import subprocess
from datetime import datetime, timezone

import plain_tcp
from gloo import seconds_per_step
from meter import Meter, peak_bytes, wait_idle
from shaped import FRAME_SHARE, Shaped, bits_per_second, grain_for, payload_bits_per_second

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEVER = 4294967294  # steps
UNAVAILABLE = 77  # exit status: network namespaces are not permitted here
MOST_BUSY = 0.1  # share of the machine that others may have used
TRACE_PARTS = 40
# Parameters of each model whose exchange can be measured.
PARAMETERS = {"lenet": 1_256_080, "cifarnet": 1_068_298, "googlenet-slim": 6_618_649, "alexnet": 61_100_840, "vgg-a": 132_863_336}
BITS = {"ternary": 1.25, "float16": 16, "float32": 32}  # per parameter; the entropy of normal gradients' codes


class Failed(Exception):
    """The run did not do what it should; the text says what."""


def programs(preset):
    """Names in the environment the programs that this module and those of tests/process start. Those look there when they are imported. What is there already stays."""
    build = ROOT / "build" / preset
    paths = {"TGD": "daemon/tgd", "TGCTL": "ctl/tgctl", "TGD_LAB_REFERENCE": "tests/lab/tgd_lab_reference", "TGD_LAB_RECORD": "tests/lab/tgd_lab_record"}
    for name, path in paths.items():
        os.environ.setdefault(name, str(build / path))
        if not os.access(os.environ[name], os.X_OK):
            raise Failed(f"{os.environ[name]} is missing; build it: deploy/build {preset} tgd tgctl tgd_lab_reference tgd_lab_record")


def job_of(options):
    job = {
        "model": options.model,
        "compute": "replay",
        "replay-zeros": options.zeros,
        "steps": options.steps + options.warm_up,
        "exchange": options.exchange,
        "last-layer": "ternary",  # for every model: what the tables compare is the codes' exchange
        "global-batch": options.nodes,
        "optimizer": "momentum",
        "ema": 0,
        "digest-every": NEVER,  # all but the first step's and the last state's
        "start-timeout": "5m",
        "step-timeout": "10m",
    }
    for assignment in options.set:
        key, _, value = assignment.partition("=")
        job[key.strip()] = value.strip()
    return job


def started_at(node):
    """When the node's first step began, in seconds since 1970."""
    for line in node.log_text().splitlines():
        if " event=run-started " in line:
            text = line.split()[0].removeprefix("ts=").removesuffix("Z")
            return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()
    raise Failed(f"{node.name} did not start the run (log {node.log})")


def metrics(node, run):
    with open(node.run_file(run, "metrics.jsonl")) as file:
        return [json.loads(line) for line in file]


def verify(job_file, mesh, run, options):
    """The plain reference over what every node saved; its report."""
    files = [node.run_file(run, "model-raw.safetensors") for node in mesh.nodes]
    command = [os.environ["TGD_LAB_REFERENCE"], "--job", job_file, "--members", str(options.nodes), "--elements", str(options.elements), *files]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise Failed(done.stderr.strip() or f"the reference ended with {done.returncode}")
    report = json.loads(done.stdout)
    if not report["verified"]:
        raise Failed(f"NOT VERIFIED: {report.get('difference')}")
    return report


def wait_saved(mesh, run):
    from patience import wait_until

    for node in mesh.nodes:
        wait_until(f"{node.name} (log {node.log}) has saved {run}", lambda: node.record(run)["state"] == "COMPLETED", 300)


def pair_bits(report, exchange, nodes):
    """(codes, sums) at their entropy that a node sends to another per step, mean over the nodes."""
    codes = statistics.mean(report["code_bits"])
    return (codes, 0) if exchange == "direct" else (codes / nodes, report["sum_bits"] / nodes)


def default_steps(options):
    """Enough for a steady median within some seconds."""
    known = {"lenet": 200, "cifarnet": 200, "googlenet-slim": 50}
    return known.get(options.model, 10)


def expected_bytes(options):
    """That a node sends per step: its gradient to all others, or its parts to their owners and sums from there to all."""
    job = job_of(options)
    direct = job.get("exchange") == "direct" or job.get("scaler-sharing") == "none"
    return PARAMETERS[options.model] * BITS[job.get("gradients", "ternary")] / 8 * (options.nodes - 1 if direct else min(options.nodes - 1, 2))


def measure(options):
    """Builds the lab, runs, checks, takes everything down; the result as a dict. Raises Failed, NetworkUnavailable."""
    from mesh import Mesh

    options.steps = options.steps or default_steps(options)
    options.grain_asked = options.grain
    if options.grain == "auto":
        options.grain = grain_for(expected_bytes(options), options.rate)
    keys = getattr(options, "keys", False)
    settings = {"insecure": None if keys else "true", "threads": options.threads, "peer-timeout": "30s"}
    with Shaped(options.nodes, options.rate, options.grain) as lab:
        with Mesh(options.nodes, settings, hosts=lab.addresses, prefixes=lab.prefixes, keys=keys) as mesh:
            job_file = mesh.job_file(job_of(options) | {"data": None, "data-train": None, "data-test": None, "learning-rate": None})
            wait_idle(options.wait_idle)
            with Meter([node.process.pid for node in mesh.nodes], lab.INTERFACE) as meter:
                run = mesh.ctl_ok("start", job_file, patience=options.patience).out.strip()
            wait_saved(mesh, run)
            status = mesh.run(run)
            digests = {member["digest"] for member in status["members"]}
            if len(digests) != 1:
                raise Failed(f"the members' digests differ: {digests}")
            report = verify(job_file, mesh, run, options)
            if report["parameters"] != PARAMETERS[options.model]:
                raise Failed(f"{options.model} has {report['parameters']:,} parameters; measure.py has another number")
            return describe(options, lab, mesh, run, status, meter, report)


def trace(meter, begin, end, line):
    """One step in TRACE_PARTS parts, per node: share of the link that its frames took, share of a core that it used."""
    length = (end - begin) / TRACE_PARTS
    parts = [meter.between(begin + k * length, begin + (k + 1) * length) for k in range(TRACE_PARTS)]
    wire = [[8 * part[1][i] / length / (line * FRAME_SHARE) for part in parts] for i in range(len(meter.pids))] if line else []
    return {"link": wire, "cpu": [[part[0][i] / length for part in parts] for i in range(len(meter.pids))]}


def describe(options, lab, mesh, run, status, meter, report):
    record = mesh.nodes[0].record(run)
    rows = [metrics(node, run) for node in mesh.nodes]
    # A step is over when the slowest member has committed it.
    steps = [max(step[i]["seconds"] for step in rows) for i in range(len(rows[0]))]
    timed = steps[options.warm_up :]
    begin = started_at(mesh.nodes[0]) + sum(row["seconds"] for row in rows[0][: options.warm_up])
    end = started_at(mesh.nodes[0]) + sum(row["seconds"] for row in rows[0])
    cpu, sent, machine = meter.between(begin, end)
    last_step = trace(meter, end - rows[0][-1]["seconds"], end, bits_per_second(options.rate))
    step = statistics.median(timed)
    nodes, parameters = options.nodes, report["parameters"]
    codes, sums = pair_bits(report, record["exchange"], nodes)
    entropy = (nodes - 1) * (codes + sums)
    payload_rate = payload_bits_per_second(options.rate)
    cores = os.cpu_count()
    result = {
        "model": options.model,
        "parameters": parameters,
        "nodes": nodes,
        "rate": options.rate,
        "grain": options.grain,
        "grain_asked": options.grain_asked,
        "exchange": record["exchange"],
        "coding": record["coding"],
        "keys": getattr(options, "keys", False),
        "job": job_of(options),
        "kernels": record["own"]["kernels"],
        "zeros": statistics.mean(report["zeros"]),
        "steps": len(timed),
        "warm_up": options.warm_up,
        "step_seconds": {"median": step, "least": min(timed), "most": max(timed)},
        "sent_bytes_per_step": [one / len(timed) for one in sent],
        "sent_bytes_per_step_by_tgd": [statistics.mean(row["sent_bytes"] for row in node[options.warm_up :]) for node in rows],
        "entropy_bytes_per_step": entropy / 8,
        "code_bits_per_parameter": statistics.mean(report["code_bits"]) / parameters,
        "sum_bits_per_parameter": report["sum_bits"] / parameters,
        "cpu_seconds_per_step": [one / len(timed) for one in cpu],
        "drops": lab.drops(),
        "cpu_cores": cores,
        "cpu_bound_seconds": sum(cpu) / len(timed) / cores,
        "cpu_busy_by_others": max(0.0, machine - sum(cpu)) / (end - begin) / os.cpu_count(),
        "peak_bytes": [peak_bytes(node.process.pid) for node in mesh.nodes],
        "last_step": last_step,
        "digest": status["members"][0]["digest"],
        "verified": report["verified"],
        "compared_elements": report["compared_elements"],
        "compared_files": report["compared_files"],
    }
    result["sent_over_entropy"] = statistics.mean(result["sent_bytes_per_step"]) * 8 / entropy if entropy else None
    if payload_rate:
        # Frames as the shapers count them; the rest of the step the link waits for a member.
        result["link_busy"] = statistics.mean(result["sent_bytes_per_step"]) * 8 / (bits_per_second(options.rate) * FRAME_SHARE) / step
        result["bound_seconds"] = entropy / payload_rate
        result["step_over_bound"] = step * payload_rate / entropy if entropy else None
        # All nodes share this machine's cores here: a step cannot be shorter than what these need for all of them.
        result["step_over_limit"] = step / max(result["bound_seconds"], result["cpu_bound_seconds"])
        result["gloo_seconds"], result["gloo_source"] = seconds_per_step(parameters, nodes, bits_per_second(options.rate))
        result["gloo_over_step"] = result["gloo_seconds"] / step
        if entropy:
            result["plain_tcp_seconds"] = plain_tcp.seconds_per_step(lab, codes / 8, sums / 8)
            result["plain_tcp_over_bound"] = result["plain_tcp_seconds"] / result["bound_seconds"]
    return result
