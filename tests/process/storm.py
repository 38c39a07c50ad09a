"""A storm over a run, and what becomes of it: the driver of tests/hostile/storm, and a short one for test_kills.

Each run has a mesh of its own, and faults at random moments (a Poisson process), drawn from seed and number. They overlap; what a
fault took is brought back after a random time, and what needs a person is done by one, who does what the pages say:

kill, term, freeze, flap   a node is killed, shut down, stopped (SIGCONT later, which may be before peer-timeout), killed and started at once
wipe                       killed, and back with an empty state directory
kill all                   and started again in some order; half of the times somebody resumes the run as well
leave, stop                tgctl leave, and join later; tgctl stop, and resume later
key                        the next step of a rotation of the cluster key, whoever is there to read it
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
import os
import random
import re
import shutil
import signal
import sys
import time
import traceback

from asking import FINAL
from changes import check_end, seconds_of
from disks import SmallDisks
from history import History
from network import Network, NetworkUnavailable
from patience import Elapsed, wait_until
from test_recompute import recompute

GAP, AWAY = 3, 4  # mean seconds between two faults, and until what a fault took is back
PEER_TIMEOUT = 2
DEADLINE = 90  # seconds: what has not ended by then hangs
JOB = {"steps": 1000000, "global-batch": 10, "schedule": "constant", "digest-every": 4, "evaluate-every": 10, "checkpoint-every": "1s", "join-limit": "60s", "start-timeout": "10s"}
# How often, among each other.
NODES = {"kill": 6, "term": 3, "freeze": 3, "flap": 2, "wipe": 1, "kill all": 2, "leave": 3, "stop": 2, "key": 2}
LINKS = {"cut": 3, "one way": 2, "part": 2, "halves": 1, "loss": 1, "slow": 1}
TORCHFT = "published, users of torchft: 12 to 14 s, 73 to 86 s"

Event = collections.namedtuple("Event", "at kind node")  # node: its name, or None
Asked = collections.namedtuple("Asked", "words follower since then")


class Progress:
    """When the run made its steps, in which view, as its nodes' files tell it; what a later resume gave up stays known."""

    def __init__(self):
        self.made, self.members = {}, {}  # by lineage, view and step; by lineage and view

    def take(self, history):
        for story in history.stories:
            kept = []
            for interval in story.intervals():
                kept = [one for one in kept if one.start < interval.start] + [interval]
            for interval, following in itertools.zip_longest(kept, kept[1:]):
                view = (interval.lineage, interval.view)
                self.members[view] = interval.members
                for row in story.metrics[interval.start : following and following.start]:
                    self.made.setdefault((*view, row["step"]), seconds_of(row["time"]))

    def next_step(self, at):
        """The first one of a view that begins after that moment, or the third one: two may have been under way."""
        return min(self._first_of_view(at, None), *sorted(made for made in self.made.values() if made > at)[2:3], float("inf"))

    def member(self, at, node):
        """The first step of a view with that node which begins after that moment."""
        return self._first_of_view(at, node)

    def _first_of_view(self, at, node):
        firsts = {}
        for (lineage, view, _), made in self.made.items():
            firsts[lineage, view] = min(made, firsts.get((lineage, view), made))
        return min((first for view, first in firsts.items() if first > at and (node is None or node in self.members[view])), default=float("inf"))


class Storm:
    """One run on one mesh. times: seconds by kind of fault."""

    def __init__(self, mesh, draw, network, counts, times):
        self.mesh, self.draw, self.network, self.counts, self.times = mesh, draw, network, counts, times
        self.away = {}  # how, by node
        self.full, self.asked, self.due, self.number = set(), [], [], itertools.count()
        self.faults, self.returns, self.progress = [], [], Progress()
        self.stopped = False  # by a person, who has to resume it
        self.keys, self.key_at = itertools.cycle(("add", "use", "drop")), 0
        self.automatic = draw.random() < 0.7
        self.weights = NODES | (LINKS if network else {}) | ({} if mesh.why_not else {"disk": 1})

    def life(self, seconds):
        job = self.mesh.job_file(JOB | {"auto-resume": str(self.automatic).lower()})
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
        self.progress.take(History.live(self.mesh.nodes, self.run))
        self.ask("status", self.run, "--json", then=self.digests)

    def digests(self, answer):
        told = set(re.findall(r'"digest_step": ?(\d+), ?"digest": ?"(\w+)"|"digest": ?"(\w+)", ?"digest_step": ?(\d+)', answer.out))
        states = {(one[0] or one[3], one[1] or one[2]) for one in told}
        assert len(states) == len({step for step, _ in states}), f"two digests of one step: {answer.out}"

    # --- faults; False: not now ---

    def here(self):
        return [node for node in self.mesh.nodes if node not in self.away]

    def later(self, act, seconds=None):
        heapq.heappush(self.due, (time.monotonic() + (self.draw.expovariate(1 / AWAY) if seconds is None else seconds), next(self.number), act))

    def fault(self, kind, node=None):
        self.faults.append(Event(time.time(), kind, node and node.name))

    def back(self, kind, node=None):
        self.returns.append(Event(time.time(), kind, node and node.name))

    def hurt(self, kind, number, back):
        if not self.here():
            return False
        node = self.draw.choice(self.here())
        self.away[node] = kind
        self.fault(kind, node)
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
        how = self.away.pop(node, None)
        if how is None:
            return  # it was started with all the others
        status = node.wait()  # by the signal itself where that came before it was a tgd
        assert how != "term" or status in (0, -signal.SIGTERM), f"{node.name} was asked to end and ended with {status} (log {node.log})"
        if how == "wipe":
            for entry in os.scandir(node.state_dir):
                shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
        node.start()
        self.back("start", node)

    def go_on(self, node):
        if self.away.get(node) == "freeze":
            del self.away[node]
            node.signal(signal.SIGCONT)
            self.back("thaw", node)

    def kill_all(self):
        self.fault("kill all")
        for node in self.mesh.nodes:
            self.away.setdefault(node, "kill all")
            node.kill()
        for node in self.draw.sample(self.mesh.nodes, len(self.mesh)):
            if self.away[node] == "term":
                self.away[node] = "kill all"
            self.begin(node)
        if self.draw.random() < 0.5:
            self.later(self.resume)

    def leave(self):
        node = self.draw.choice(self.mesh.nodes)
        self.fault("leave", node)
        self.ask("leave", node.name)
        self.later(lambda: self.join(node))

    def join(self, node):
        self.ask("join", node.name, then=lambda answer: answer.code == 0 and self.back("join", node))

    def stop(self):
        def stopped(answer):
            self.stopped |= answer.code in (0, 10)

        self.ask("stop", self.run, then=stopped)
        self.later(self.resume)

    def resume(self):
        def resumed(answer):
            if answer.code == 0:
                self.back("resume")
                self.stopped = False

        self.ask("resume", self.run, "--detach", then=resumed)

    def key(self):
        if time.monotonic() < self.key_at:
            return False
        self.key_at = time.monotonic() + 5  # the nodes look each second
        self.mesh.keygen(self.mesh.key_file, "--rotate", next(self.keys))
        self.fault("key")

    def disk(self):
        node = self.draw.choice(self.mesh.nodes)
        self.full.add(node)
        self.fault("disk", node)
        self.mesh.fill(node)
        self.later(lambda: self.free(node))

    def free(self, node):
        self.mesh.free(node)
        self.full.discard(node)
        self.back("free", node)

    def links(self, kind, break_links):
        index = self.draw.randrange(len(self.mesh))
        self.fault(kind, self.mesh[index])
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
        self.back("heal")

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
                assert one.since.seconds() < DEADLINE, f"hang: tgctl {' '.join(one.words)} has no end after {DEADLINE} s\n{self.statuses()}"
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

    def statuses(self):
        return f"{self.run}, faults {[(one.kind, one.node) for one in self.faults[-8:]]}\n" + "\n".join(
            f"--- {node.name}:\n{answer.out}{answer.err}" for node in self.mesh.nodes for answer in [self.mesh.ctl("status", self.run, node=node)])  # fmt: skip

    def calm(self):
        """All is healed; all nodes are in the run, or wait for a moment that they name, and it goes on."""
        while self.due:
            heapq.heappop(self.due)[2]()
        wait_until(lambda: f"hang: all nodes are in the run again\n{self.statuses()}", self.all_in, DEADLINE)
        before = self.mesh.run(self.run)["step"]
        wait_until(lambda: f"hang: the run goes on after step {before}\n{self.statuses()}", lambda: self.mesh.run(self.run)["step"] > before + 5, DEADLINE)
        self.check()

    def all_in(self):
        self.look()
        records = self.records()
        states = {record.get("state") for record in records.values()}
        if self.asked:
            return False
        if states <= {*FINAL, None}:
            assert not states & {"COMPLETED", "FAILED"}, f"it ended by itself\n{self.statuses()}"
            if self.stopped or not self.automatic or any(one.kind == "wipe" for one in self.faults):
                self.resume()
        elif "PAUSED" in states and " is lost" in self.mesh.run(self.run)["reason"]:
            self.ask("stop", self.run)
            self.stopped = True
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
        wait_until(f"all nodes tell that {self.run} is STOPPED", lambda: all(record.get("state") == "STOPPED" for record in self.records().values()), DEADLINE)
        names = self.mesh[0].record(self.run)["members"]
        members = [node for node in self.mesh.nodes if node.name in names]
        lines = check_end(members, self.run)
        self.progress.take(History.of(self.mesh.nodes, self.run).check())
        step, digest = members[0].record(self.run)["step"], members[0].record(self.run)["digest"]
        code, out, err = recompute(self.mesh.fetch(self.run, node=members[0]))
        assert code == 0 and out.endswith(f"digest {digest}, as recorded; {step} of {step} losses compared\n"), f"{self.run} is computed again: {out} {err}"
        self.counts["views"] += len(lines)
        self.measure()
        print(f"{self.run}: {len(self.faults)} faults, {len(lines)} views, {lines[-1]['lineage']} lineages, {step} steps as computed again", flush=True)

    def measure(self):
        """Until the next step of the run: after the fault, or, where that came only after something was back, after the last return."""
        for fault in self.faults:
            made = self.progress.next_step(fault.at)
            backs = [one.at for one in self.returns if fault.at < one.at < made]
            if made < float("inf") and (not backs or fault.kind in ("flap", "kill all")):
                self.times[fault.kind].append(made - fault.at)
            elif made < float("inf"):
                self.times[f"{fault.kind}, PAUSED until something was back: from then on"].append(made - max(backs))
        past = collections.Counter()
        for one in self.returns:
            made = self.progress.member(one.at, one.node)
            if one.kind in ("start", "join") and made < min((other.at for other in self.faults if other.at > one.at and other.node in (one.node, None)), default=float("inf")):
                past[one.node] += 1
                again = "" if past[one.node] == 1 else ", again: it has to wait, 10 s and more"
                self.times[f"{one.kind}: until it is a member{again}"].append(made - one.at)


def table(times):
    yield f"{'recovery, s':70} {'count':>5} {'median':>7} {'90 %':>7} {'worst':>7}"
    for kind, seconds in sorted(times.items()):
        ordered = sorted(seconds)
        pick = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        yield f"{kind:70} {len(ordered):5} {pick(0.5):7.2f} {pick(0.9):7.2f} {ordered[-1]:7.2f}"
    yield TORCHFT


@contextlib.contextmanager
def meshes(nodes, links):
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network(nodes, cut=True)) if links else None
        places = {"hosts": network.addresses, "prefixes": network.prefixes} if network else {}
        yield stack.enter_context(SmallDisks(nodes, {"peer-timeout": f"{PEER_TIMEOUT}s"}, keys=True, **places)), network


def storm(seed, number, nodes, seconds, links, counts, times):
    with meshes(nodes, links) as (mesh, network):
        Storm(mesh, random.Random(f"{seed}/{number}"), network, counts, times).life(seconds)


def main(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20, help="of storm (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--nodes", type=lambda text: [int(one) for one in text.split(",")], default=[2, 3, 4, 5], help="of one run after the other")
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--each", type=float, default=60, help="seconds of storm over a run (%(default)s)")
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
            storm(options.seed, number, nodes, options.each, links, counts, times)
        except Exception:
            traceback.print_exc()
            failed.append((number, nodes))
            print(f"run {number} of seed {options.seed} with {nodes} nodes failed: --seed {options.seed} --first {number} --minutes 1", file=sys.stderr, flush=True)
    print("\n".join(table(times)))
    print(f"seed {options.seed}: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    print(f"{sum(counts[kind] for kind in (*NODES, *LINKS, 'disk'))} faults, {len(failed)} runs failed or hang: {failed}")
    sys.exit(bool(failed))
