"""A storm over a run, and what becomes of it: the driver of tests/hostile/storm, and a short one for test_kills.

Each run has a mesh of its own, and faults at random moments (a Poisson process), drawn from seed and number. They overlap; what a
fault took is brought back after a random time, and what needs a person is done by one, who does what the pages say:

kill, term, freeze, flap   a node is killed, shut down, stopped (SIGCONT later, which may be before peer-timeout), killed and started at once
wipe                       killed, and back with an empty state directory
kill all                   and started again in some order; half of the times somebody resumes the run as well
leave, stop                tgctl leave, and join later; tgctl stop, and resume later
key                        the next step of a rotation of the cluster key, at the nodes that are up
disk                       full, and free later (as root)
cut, one way, part, halves, loss, slow
                           links: a node's, in both directions or in one; between two nodes; between two halves; a tenth of what a node sends is lost; 2
                           Mbit/s (in network namespaces)

After each the histories of all nodes keep the promises of history.py, and no node shows two digests of one step. At the end all
is healed, all nodes come back into the run, it goes on; its end is one on all nodes, and tgd recompute comes to its losses and
its digest. Whatever has not ended at its deadline is a hang, reported with what all nodes say."""

import argparse
import collections
import contextlib
import heapq
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback

from asking import FINAL
from disks import SmallDisks
from history import History
from network import Network, NetworkUnavailable
from patience import Elapsed, wait_until
from recovery import Recovery, table
from resuming import intervals
from test_recompute import recompute

GAP, AWAY = 3, 4  # mean seconds between two faults, and until what a fault took is back
PEER_TIMEOUT = 2
DEADLINE = 90  # seconds: what has not ended by then hangs
JOB = {"steps": 1000000, "global-batch": 10, "schedule": "constant", "digest-every": 4, "evaluate-every": 10, "checkpoint-every": "1s", "join-limit": "60s", "start-timeout": "10s"}
# How often, among each other.
NODES = {"kill": 6, "term": 3, "freeze": 3, "flap": 2, "wipe": 1, "kill all": 2, "leave": 3, "stop": 2, "key": 2}
LINKS = {"cut": 3, "one way": 2, "part": 2, "halves": 1, "loss": 1, "slow": 1}

Asked = collections.namedtuple("Asked", "words follower since then")


class Storm:
    """One run on one mesh. times: seconds by kind of fault."""

    def __init__(self, mesh, draw, network, without, counts, times):
        self.mesh, self.draw, self.network, self.counts, self.times = mesh, draw, network, counts, times
        self.run, self.away = "", {}  # its id; how, by node
        self.asked, self.due, self.number = [], [], itertools.count()
        self.recovery = Recovery()
        self.keys, self.key_at = itertools.cycle(("add", "use", "drop")), 0
        weights = NODES | (LINKS if network else {}) | ({} if mesh.why_not else {"disk": 1})
        self.weights = {kind: weight for kind, weight in weights.items() if kind not in without}

    def life(self, seconds):
        job = self.mesh.job_file(JOB | {"auto-resume": self.draw.choice(("true", "true", "false"))})
        start = wait_until("a start is taken", lambda: (answer := self.mesh.ctl("start", job, "--detach")).code == 0 and answer)
        self.run = start.out.strip()
        end = time.monotonic() + seconds
        following = time.monotonic() + self.draw.expovariate(1 / GAP)
        while time.monotonic() < end:
            if time.monotonic() >= following:
                following += self.draw.expovariate(1 / GAP)
                self.strike()
            if self.due and self.due[0][0] <= time.monotonic():
                heapq.heappop(self.due)[2]()
                self.check()
            self.look()
            time.sleep(0.02)
        self.calm()
        self.end()

    def strike(self):
        kind = self.draw.choices(list(self.weights), self.weights.values())[0]
        if getattr(self, kind.replace(" ", "_"))() is not False:
            self.counts[kind] += 1
            self.check()

    def check(self):
        self.recovery.take(History.live(self.mesh.nodes, self.run))
        self.ask("status", self.run, "--json", then=self.digests)

    def digests(self, answer):
        rows = json.loads(answer.out)["runs"][0]["members"] if answer.code == 0 else []
        told = {(row["digest_step"], row["digest"]) for row in rows if row["digest"] and row["state"] == "RUNNING"}
        assert len(told) == len({step for step, _ in told}), f"two digests of one step: {answer.out}"

    # --- faults; False: not now ---

    def here(self):
        return [node for node in self.mesh.nodes if node not in self.away]

    def later(self, act, seconds=None):
        heapq.heappush(self.due, (time.monotonic() + (self.draw.expovariate(1 / AWAY) if seconds is None else seconds), next(self.number), act))

    def hurt(self, kind, number, back):
        if not self.here():
            return False
        node = self.draw.choice(self.here())
        self.away[node] = kind
        self.recovery.fault(kind, node)
        node.signal(number)
        self.later(lambda: back(node))
        return node

    def kill(self):
        return self.hurt("kill", signal.SIGKILL, self.begin)

    def term(self):
        return self.hurt("term", signal.SIGTERM, self.begin)

    def freeze(self):
        return self.hurt("freeze", signal.SIGSTOP, self.go_on)

    def flap(self):
        node = self.hurt("flap", signal.SIGKILL, self.begin)
        return node and self.begin(node)

    def wipe(self):
        """With its last copy a run would be lost, and rightly so."""
        return not self.away and len(self.mesh) > 2 and self.hurt("wipe", signal.SIGKILL, self.begin) is not False

    def begin(self, node):
        if self.away.get(node) in (None, "freeze"):
            return  # it was started with all the others
        how = self.away.pop(node)
        status = node.wait()  # by the signal itself where that came before it was a tgd
        assert how != "term" or status in (0, -signal.SIGTERM), f"{node.name} was asked to end and ended with {status} (log {node.log})"
        if how == "wipe":
            for entry in os.scandir(node.state_dir):
                shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
        node.start()
        self.recovery.back("start", node)

    def go_on(self, node):
        if self.away.get(node) == "freeze":
            del self.away[node]
            node.signal(signal.SIGCONT)
            self.recovery.back("thaw", node)

    def kill_all(self):
        self.recovery.fault("kill all")
        for node in self.mesh.nodes:
            self.away[node] = "wipe" if self.away.get(node) == "wipe" else "kill all"
            node.kill()
        for node in self.draw.sample(self.mesh.nodes, len(self.mesh)):
            self.begin(node)
        if self.draw.random() < 0.5:
            self.later(self.resume)

    def leave(self):
        node = self.draw.choice(self.mesh.nodes)
        self.recovery.fault("leave", node)
        self.ask("leave", node.name)
        self.later(lambda: self.join(node))

    def join(self, node):
        self.ask("join", node.name, then=lambda answer: answer.code == 0 and self.recovery.back("join", node))

    def stop(self):
        self.recovery.fault("stop")
        self.ask("stop", self.run)
        self.later(self.resume)

    def resume(self):
        self.ask("resume", self.run, "--detach", then=lambda answer: answer.code == 0 and self.recovery.back("resume"))

    def key(self):
        if time.monotonic() < self.key_at:
            return False
        self.key_at = time.monotonic() + 5  # the nodes look each second
        self.mesh.keygen(self.mesh.key_file, "--rotate", next(self.keys))
        self.recovery.fault("key")

    def disk(self):
        node = self.draw.choice(self.mesh.nodes)
        self.recovery.fault("disk", node)
        self.mesh.fill(node)
        self.later(lambda: self.free(node))

    def free(self, node):
        self.mesh.free(node)
        self.recovery.back("free", node)

    def links(self, kind, break_links):
        index = self.draw.randrange(len(self.mesh))
        self.recovery.fault(kind, self.mesh[index])
        break_links(index)
        self.later(self.heal)

    def cut(self):
        self.links("cut", self.network.isolate)

    def one_way(self):
        self.links("one way", self.network.cut)

    def part(self):
        self.links("part", lambda one: self.network.part(one, self.draw.choice([other for other in range(len(self.mesh)) if other != one])))

    def halves(self):
        order = self.draw.sample(range(len(self.mesh)), len(self.mesh))
        half = len(order) // 2
        self.links("halves", lambda _: [self.network.part(*pair) for pair in itertools.product(order[:half], order[half:])])

    def loss(self):
        self.links("loss", self.network.lose)

    def slow(self):
        self.links("slow", self.network.slow)

    def heal(self):
        self.network.heal()
        self.recovery.back("heal")

    # --- what goes on beside it ---

    def ask(self, *words, then=lambda answer: None):
        """tgctl at some node that should answer; its end is seen by look()."""
        if self.here():
            self.asked.append(Asked(words, self.mesh.follow(*words, node=self.draw.choice(self.here())), Elapsed(), then))

    def look(self):
        """No node ends by itself, no tgctl hangs or dies."""
        for node in self.here():
            assert node.alive(), f"{node.name} ended with {node.process.returncode} (log {node.log})"
        for one in list(self.asked):
            if one.follower.process.poll() is None:
                assert one.since.seconds() < DEADLINE, f"hang: tgctl {' '.join(one.words)} has no end after {DEADLINE} s"
                continue
            self.asked.remove(one)
            self.mesh.followers.remove(one.follower)
            answer = one.follower.finish()
            assert answer.code >= 0, f"tgctl {' '.join(one.words)}: {answer}"
            if one.words[0] != "status":
                self.counts[f"tgctl {one.words[0]}: exit code {answer.code}"] += 1
            one.then(answer)

    def records(self):
        return {node: node.record(self.run) if os.path.exists(node.run_file(self.run, "run.json")) else {} for node in self.mesh.nodes}

    def report(self):
        """What was done to it, and what all nodes say."""
        for one in sorted(self.recovery.faults + self.recovery.returns):
            print(f"{time.strftime('%H:%M:%S', time.gmtime(one.at))}.{int(one.at % 1 * 1000):03} {one.kind} {one.node or ''}")
        for node in self.mesh.nodes:
            with contextlib.suppress(AssertionError):
                answer = self.mesh.ctl("status", self.run, node=node, patience=20)
                print(f"--- {node.name}:\n{answer.out}{answer.err}", flush=True)

    def calm(self):
        """All is healed; all nodes are in the run, or wait for a moment that they name, and it goes on."""
        while self.due:
            heapq.heappop(self.due)[2]()
        wait_until(lambda: f"hang: all nodes are in the run again", self.all_in, DEADLINE)
        before = self.mesh.run(self.run)["step"]
        wait_until(lambda: f"hang: the run goes on after step {before}", lambda: self.mesh.run(self.run)["step"] > before + 5, DEADLINE)
        self.check()

    def all_in(self):
        self.look()
        records = self.records()
        states = {record.get("state") for record in records.values()}
        if self.asked:
            return False
        if states <= {*FINAL, None}:
            assert not states & {"COMPLETED", "FAILED"}, f"it ended by itself"
            told = " ".join(self.mesh.ctl("status", self.run, node=next(node for node, record in records.items() if record)).out.split())
            if "resumes automatically" not in told or any(one.kind == "wipe" for one in self.recovery.faults):
                self.resume()
        elif "PAUSED" in states and " is lost" in self.mesh.run(self.run)["reason"]:
            self.ask("stop", self.run)
        elif "RUNNING" in states:
            members = next(record["members"] for record in records.values() if record.get("state") == "RUNNING")
            out = [node for node in self.mesh.nodes if node.name not in members]
            for node in out:
                if records[node].get("left_by_order"):
                    self.join(node)
            views = {(record["lineage"], record["view"]) for node, record in records.items() if node not in out}
            return len(views) == 1 and all("admitted again in" in node.log_text().rpartition("event=joining")[2] for node in out)
        return False

    def end(self):
        self.mesh.ctl_ok("stop", self.run)
        names = [member["node"] for member in self.mesh.run(self.run)["members"]]
        members = [node for node in self.mesh.nodes if node.name in names]
        wait_until(lambda: f"{names} have recorded that {self.run} is STOPPED",
                   lambda: all(node.record(self.run)["state"] == "STOPPED" for node in members), DEADLINE)  # fmt: skip
        self.recovery.take(History.live(self.mesh.nodes, self.run))
        ends = {(record["step"], record["digest"]) for record in (node.record(self.run) for node in members)}
        assert len(ends) == 1, f"it has {len(ends)} ends: {ends}"
        step, digest = ends.pop()
        code, out, err = recompute(self.mesh.fetch(self.run, node=members[0]))
        assert code == 0 and out.endswith(f"digest {digest}, as recorded; {step} of {step} losses compared\n"), f"{self.run} is computed again: {out} {err}"
        lines = intervals(members[0], self.run)
        self.counts["views"] += len(lines)
        self.recovery.measure(self.times)
        print(f"{len(self.mesh)} nodes: {len(self.recovery.faults)} faults, {len(lines)} views, {lines[-1]['lineage']} lineages, {step} steps as computed again", flush=True)


@contextlib.contextmanager
def meshes(nodes, links):
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network(nodes, cut=True)) if links else None
        places = {"hosts": network.addresses, "prefixes": network.prefixes} if network else {}
        yield stack.enter_context(SmallDisks(nodes, {"peer-timeout": f"{PEER_TIMEOUT}s"}, keys=True, **places)), network


def storm(seed, number, nodes, seconds, counts, times, links=False, without=()):
    with meshes(nodes, links) as (mesh, network):
        one = Storm(mesh, random.Random(f"{seed}/{number}"), network, without, counts, times)
        try:
            one.life(seconds)
        except Exception:
            one.report()
            raise


def main(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20, help="of storm (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--nodes", type=lambda text: [int(one) for one in text.split(",")], default=[2, 3, 4, 5], help="of one run after the other")
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--each", type=float, default=60, help="seconds of storm over a run (%(default)s)")
    parser.add_argument("--without", type=lambda text: text.split(","), default=[], help=f"kinds of faults, of {','.join((*NODES, *LINKS, 'disk'))}")
    parser.add_argument("--no-links", action="store_true", help="no link is cut: without network namespaces")
    options = parser.parse_args()
    links, counts, times, failed = not options.no_links, collections.Counter(), collections.defaultdict(list), []
    try:
        with Network(2, cut=True) if links else contextlib.nullcontext():
            pass
    except NetworkUnavailable as why:
        links = print(f"no link is cut: {why}")
    print(f"seed {options.seed}", flush=True)
    for number in range(options.first, options.first + max(1, round(60 * options.minutes / options.each))):
        nodes = options.nodes[number % len(options.nodes)]
        try:
            storm(options.seed, number, nodes, options.each, counts, times, links, options.without)
        except Exception as error:
            traceback.print_exc()
            failed.append(f"{number} with {nodes} nodes " + ("hangs" if str(error).startswith("hang: ") else "failed"))
            print(f"again: tests/hostile/storm --seed {options.seed} --first {number} --minutes {options.each / 60:g} --each {options.each:g} --nodes {','.join(map(str, options.nodes))}", file=sys.stderr, flush=True)
    print("\n".join(table(times)))
    print(f"seed {options.seed}: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    print(f"{sum(counts[kind] for kind in (*NODES, *LINKS, 'disk'))} faults, {sum('hangs' in one for one in failed)} hangs, {len(failed)} runs lost{': ' if failed else ''}{', '.join(failed)}")
    sys.exit(bool(failed))
