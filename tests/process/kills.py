"""Nodes die at random moments, and what becomes of the run is checked: the one driver of tests/hostile/kills and
tests/hostile/power, and of some trials for test_kills. Kinds of trials, on one mesh, each drawn from seed and number:

training   one death, two at once, or one shortly after the other: by SIGKILL, SIGTERM (a node that is shut down), SIGSTOP for
           longer than peer-timeout (SIGCONT later) or, in network namespaces, a cut, in both directions or in one. The others
           go on and COMPLETE, or are PAUSED and go on when the dead are back
returning  each node dies once, in other nodes' joins too, and comes back into the run
saving     some call to the disk is the last thing that a node does
ending     deaths about when the last step is taken
stopping   deaths while a stop is in progress
power      all are killed, some times, also while they write a checkpoint, come back and go on, by themselves or when they are told to:
           the digest is that of the same run without interruptions

After each all nodes tell one end of the run, fetch gets the same bytes at each of them, and what they have on their disks keeps
the promises of history.py."""

import argparse
import collections
import contextlib
import filecmp
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback

from asking import FINAL
from changes import changes
from files import read_metrics
from history import History
from mesh import Mesh
from network import Network
from patience import wait_until
from resuming import RECIPES, job_of, kill_all, start_all, intervals, whole
from test_recompute import recompute

PEER_TIMEOUT = 2.0
KILL, TERM, STOP, CUT, ONE_WAY, FAULT = "SIGKILL", "SIGTERM", "SIGSTOP", "cut", "cut one way", "fault"
SIGNALS = {KILL: signal.SIGKILL, TERM: signal.SIGTERM, STOP: signal.SIGSTOP}
SILENT = (STOP, CUT, ONE_WAY)  # no node reports it; the others miss a sign of life
PAUSED_FOR = 1.5  # seconds without another state until it is believed
DISK_CALLS = {"open": 7, "write": 60, "fsync": 14, "rename": 7}  # about as many as a run makes
MODELS = ("model.safetensors", "model-raw.safetensors")
# What a trial may be; power is a command of its own.
KINDS = ("training", "returning", "saving", "ending", "stopping")
MOST_KILLS = 4  # in one run, all nodes together


def settings(network=False, threads=1):
    """A mesh's options. With more than one thread an exchange has helpers, which a view change ends and makes anew."""
    return {"peer-timeout": f"{PEER_TIMEOUT:g}s", "threads": threads} | ({"insecure": "true"} if network else {})


class Parts(collections.namedtuple("Parts", "noticed promised decided rebuilt stepped")):
    """Seconds from a death until a node has noticed, and from there until it had promised, learned the decision, begun the
    first step of the new view; and from the death until that step was committed."""

    @classmethod
    def of(cls, node, run, death):
        """None where the change to the second view was overtaken by another one, or by the run's end."""
        change = next((one for one in changes(node, run) if one.view == 2), None)
        if change is None or "-" in (change.words["decided-ms"], change.words["rebuilt-ms"]):
            return None
        promised, decided, rebuilt = (0 if change.words[part] == "-" else int(change.words[part]) / 1000 for part in ("promised-ms", "decided-ms", "rebuilt-ms"))
        seconds = {row["step"]: row["seconds"] for row in read_metrics(node.run_file(run, "metrics.jsonl"))}.get(change.start + 1)
        if seconds is None:
            return None
        return cls(change.at - rebuilt - death, promised, decided, rebuilt, change.at - death + seconds)


class Kills:
    """Trials on one mesh. network: of its namespaces, where links can be cut."""

    def __init__(self, mesh, seed, kinds=KINDS, network=None, recipes=tuple(RECIPES)):
        self.mesh, self.seed, self.kinds, self.network, self.recipes = mesh, seed, kinds, network, recipes
        self.counts = collections.Counter()
        self.times = collections.defaultdict(list)  # Parts by way; of deaths that came alone
        self.references = {}

    def trial(self, number):
        Trial(self, number).life()

    def reference(self, recipe):
        """Digest and seconds of a run without an interruption."""
        if recipe not in self.references:
            began = time.time()
            run = self.mesh.start(job_of(recipe, self.mesh.folder))
            self.references[recipe] = whole(self.mesh, run), time.time() - began
        return self.references[recipe]


class Trial:
    def __init__(self, kills, number):
        self.kills, self.mesh, self.counts = kills, kills.mesh, kills.counts
        self.draw = random.Random(f"{kills.seed}/{number}")
        self.kind = kills.kinds[number % len(kills.kinds)]
        self.run = f"{self.kind}-{number}"
        self.away = {}  # how, by node
        self.past = []  # what was done

    def life(self):
        getattr(self, self.kind)()
        self.come_back()
        end = self.check()
        self.mesh.ctl("delete", self.run)
        self.counts[self.kind] += 1
        self.counts[end] += 1
        print(f"{self.run}: {', '.join(self.past)}: {end}", flush=True)

    # --- kinds ---

    def training(self):
        ways = [KILL, KILL, TERM, STOP] + ([CUT, CUT, ONE_WAY] if self.kills.network else [])
        how = self.draw.choice(("one", "one", "two at once", "one after the other"))
        plan = [(victim, self.draw.choice(ways)) for victim in self.draw.sample(self.mesh.nodes, 1 if how == "one" else 2)]
        self.start({"steps": 120, "schedule": "constant", "checkpoint-every": self.draw.choice(("0s", "50ms")), "evaluate-every": self.draw.choice((0, 10))})
        time.sleep(self.draw.uniform(0, 0.6))  # the moment is what is drawn
        death = time.time()
        for index, (victim, way) in enumerate(plan):
            if index == 1 and how == "one after the other":
                time.sleep(self.draw.uniform(0, 0.8) + (PEER_TIMEOUT if plan[0][1] in SILENT and self.draw.random() < 0.5 else 0))
            self.hurt(victim, way)
        self.past.append(how)
        paused = self.until_over()
        self.come_back()
        self.wait_for("COMPLETED")
        if how == "one" and not paused:
            parts = [Parts.of(node, self.run, death) for node in self.mesh.nodes if node is not plan[0][0]]
            if None not in parts:
                self.kills.times[plan[0][1]].append(max(parts, key=lambda one: one.stepped))

    def returning(self):
        self.start({"steps": 1000000, "schedule": "constant", "digest-every": 4, "evaluate-every": 50, "join-limit": "60s", "auto-resume": "true"})
        for victim in self.draw.sample(self.mesh.nodes, len(self.mesh)):
            self.hurt(victim, self.draw.choice((KILL, TERM)))
            time.sleep(self.draw.uniform(0, 1))
            self.come_back(wait=False)
            time.sleep(self.draw.uniform(0, 2))
        names, seen = [node.name for node in self.mesh.nodes], {}

        def all_in():
            for node in self.mesh.nodes:
                if not os.path.exists(node.run_file(self.run, "run.json")):
                    return False  # set aside: the others resumed by themselves without its state
                record = node.record(self.run)
                seen[node.name] = record["state"] in ("RUNNING", "PAUSED") and record["members"] == names and record["view"]
            return len(set(seen.values())) == 1 and all(seen.values())

        wait_until(lambda: f"all nodes are in {self.run}: views {seen}", all_in)
        self.mesh.wait_for_step(self.run, self.mesh.run(self.run)["step"] + 5)
        self.mesh.ctl_ok("stop", self.run)
        self.wait_for("STOPPED")
        code, out, err = recompute(self.mesh.fetch(self.run))
        assert code == 0, f"{self.run} is computed again: {out} {err}"

    def saving(self):
        for victim in self.victims():
            call = self.draw.choice(list(DISK_CALLS))
            self.away[victim] = FAULT
            self.past.append(f"{call} of {victim.name}")
            self.mesh.configure(self.mesh.nodes.index(victim), fault=f"kill@{call}:{self.draw.randint(1, DISK_CALLS[call])}")
            self.mesh.restart([self.mesh.nodes.index(victim)])
        self.start({"steps": self.draw.randint(1, 8), "checkpoint-every": self.draw.choice(("0s", "50ms"))}, begins=False)
        self.until_over()

    def ending(self):
        steps = self.draw.randint(5, 30)
        self.start({"steps": steps, "checkpoint-every": self.draw.choice(("0s", "50ms"))})
        wait_until("the end is near", lambda: self.shown(self.mesh[0]).get("step", 0) >= steps - 2)
        time.sleep(self.draw.uniform(0, 0.15))
        self.hurt_some()
        self.until_over()

    def stopping(self):
        self.start({"steps": 100000, "checkpoint-every": self.draw.choice(("0s", "50ms"))})
        stop = self.mesh.follow("stop", self.run, node=self.draw.randrange(len(self.mesh)))
        time.sleep(self.draw.uniform(0, 0.25))
        self.hurt_some()
        self.until_over(stops=stop.finish().code != 0)

    def power(self):
        recipe, unasked = self.draw.choice(self.kills.recipes), self.draw.random() < 0.5
        digest, seconds = self.kills.reference(recipe)
        keys = {"checkpoint_every": self.draw.choice(("50ms", "200ms"))} | ({"auto_resume": "true", "join_limit": "60s"} if unasked else {})
        job = self.mesh.job_file(job_of(recipe, self.mesh.folder, **keys))
        follower = self.mesh.follow("start", job, "--id", self.run)
        if unasked:
            follower.first_line()
        self.past.append(f"{recipe}, {'by themselves' if unasked else 'told to'}")
        for _ in range(self.draw.randint(1, MOST_KILLS)):
            time.sleep(self.draw.uniform(0, seconds))
            over = "COMPLETED" in [end[0] for end in self.ends().values()]
            kill_all(self.mesh, self.draw.sample(self.mesh.nodes, len(self.mesh)))
            follower.finish()
            start_all(self.mesh)
            self.counts["kills of all"] += 1
            if over:
                break
            if not unasked:
                follower = self.go_on(job)
        follower.finish()
        if not unasked and self.mesh.run(self.run)["state"] != "COMPLETED":  # the last kill came at its end
            self.go_on(job).finish().ends(0)
        self.wait_for("COMPLETED")
        self.mesh.wait_whole(self.run)
        if all(len(one["members"]) == len(self.mesh) for one in intervals(self.mesh[0], self.run)):
            assert whole(self.mesh, self.run) == digest, f"{self.run}: without interruptions its digest is {digest}"

    def go_on(self, job):
        """A tgctl that follows; a run that some member had not begun is started again."""
        if all(os.path.exists(node.run_file(self.run, "run.json")) for node in self.mesh.nodes):
            return self.mesh.follow("resume", self.run, node=self.draw.randrange(len(self.mesh)))
        for node in self.mesh.nodes:
            self.mesh.ctl("delete", self.run, node=node)
        return self.mesh.follow("start", job, "--id", self.run)

    # --- deaths and returns ---

    def start(self, job, begins=True):
        node = self.draw.choice([node for node in self.mesh.nodes if node.alive()])
        answer = self.mesh.ctl("start", self.mesh.job_file({"start-timeout": "5s"} | job), "--id", self.run, "--detach", node=node)
        if begins:
            answer.ends(0)
            self.mesh.wait_for_step(self.run, 1)

    def victims(self):
        return self.draw.sample(self.mesh.nodes, self.draw.choice((1, 1, 2, len(self.mesh))))

    def hurt_some(self):
        for victim in self.victims():
            self.hurt(victim, self.draw.choice((KILL, KILL, TERM)))
            time.sleep(self.draw.choice((0, 0, self.draw.uniform(0, 0.1))))

    def hurt(self, victim, way):
        self.away[victim] = way
        self.counts[way] += 1
        self.past.append(f"{way} of {victim.name}")
        if way in SIGNALS:
            victim.signal(SIGNALS[way])
        elif way == CUT:
            self.kills.network.isolate(self.mesh.nodes.index(victim))
        else:
            self.kills.network.cut(self.mesh.nodes.index(victim))

    def come_back(self, wait=True):
        if any(way in (CUT, ONE_WAY) for way in self.away.values()):
            self.kills.network.heal()
        for node, way in self.away.items():
            if way == STOP:
                node.signal(signal.SIGCONT)
            if way in (KILL, TERM):
                status = node.wait()
                if way == TERM and status != 0:
                    raise AssertionError(f"{node.name} was asked to end and ended with {status} (log {node.log})")
            if way == FAULT:
                self.mesh.configure(self.mesh.nodes.index(node), fault=None)
                node.end()
            if way in (KILL, TERM, FAULT):
                node.start()
        self.away.clear()
        if wait:
            self.mesh.wait_ready()

    # --- what follows ---

    def shown(self, node):
        """The run as this node tells of it; nothing where it does not."""
        answer = self.mesh.ctl("status", self.run, "--json", node=node)
        return json.loads(answer.out)["runs"][0] if answer.code == 0 else {}

    def states(self):
        """The run's states on the nodes that nothing was done to, and on those whose fault has not come."""
        states = {}
        for node in self.mesh.nodes:
            if not node.alive() and node not in self.away:
                raise AssertionError(f"{node.name} crashed with {node.process.returncode} (log {node.log})")
            if node not in self.away or (self.away[node] == FAULT and node.alive()):
                states[node.name] = self.shown(node).get("state")
        return states

    def until_over(self, stops=False):
        """Waits until the run has ended on all unhurt nodes. Returns whether it was PAUSED and the dead had to come back. stops: a
        stop that no living node has heard is asked for again."""
        paused, states = False, {}

        def over():
            nonlocal paused, states
            states = self.states()
            if "PAUSED" in states.values() and self.away and self.stays_paused():
                paused = True
                self.counts["PAUSED"] += 1
                self.come_back()
            elif stops and states:
                self.mesh.ctl("stop", self.run, node=next(node for node in self.mesh.nodes if node.name in states))
            return all(state is None or state in FINAL for state in states.values())

        wait_until(lambda: f"{self.run} ({self.past}) ends: {states}", over)
        return paused

    def stays_paused(self):
        until = time.time() + PAUSED_FOR + (PEER_TIMEOUT if any(way in SILENT for way in self.away.values()) else 0)
        while time.time() < until:
            if not set(self.states().values()) & {"PAUSED"}:
                return False
            time.sleep(0.1)
        return set(self.states().values()) <= {"PAUSED", None}

    def ends(self):
        """The end that each node's record tells, of the nodes that have one."""
        records = {node.name: node.record(self.run) for node in self.mesh.nodes if os.path.exists(node.run_file(self.run, "run.json"))}
        return {name: (record["state"], record["reason"], record["since"]) for name, record in records.items()}

    def wait_for(self, state):
        wait_until(lambda: f"{self.run} ({self.past}) is {state} on all nodes: {self.ends()}",
                   lambda: len(self.ends()) == len(self.mesh) and {end[0] for end in self.ends().values()} == {state}, 120)  # fmt: skip

    def check(self):
        """One end everywhere, one state everywhere, one history. The end's word."""
        wait_until(lambda: f"one end of {self.run} ({self.past}): {self.ends()}",
                   lambda: len(set(self.ends().values())) <= 1 and all(end[0] in FINAL for end in self.ends().values()))  # fmt: skip
        if not self.ends():
            return "not begun"
        told = []

        def told_alike():
            shown = [self.shown(node) for node in self.mesh.nodes]
            told[:] = [one and (one["state"], one["reason"], [(row["node"], row["state"], row["save"]) for row in one["members"]]) for one in shown]
            return all(told) and all(one == told[0] for one in told)

        wait_until(lambda: f"all nodes tell the same of {self.run} ({self.past}): {told}", told_alike)
        state, _, members = told[0]
        history = History.of(self.mesh.nodes, self.run)
        # A node that died while it saved may have less of the last step than the others, whose end it tells.
        broken = list(history.promises() if self.kind in ("saving", "ending", "stopping") else history.problems())
        assert not broken, f"{self.run} ({self.past}) breaks a promise: {broken}"
        self.past.append(history.summary())
        folders = [os.path.join(self.mesh.folder, f"{self.run}-{node.name}") for node in self.mesh.nodes]
        partial = ("--partial",) if state in ("FAILED", "INTERRUPTED") else ()
        answers = [self.mesh.ctl("fetch", self.run, "-o", folder, *partial, node=node) for node, folder in zip(self.mesh.nodes, folders)]
        assert len({answer.code for answer in answers}) == 1, f"{self.run}, {state}: {answers}"
        if answers[0].code != 0:
            assert not any(save in ("saved", "in memory") for _, _, save in members), f"{self.run}: {members}, but fetch: {answers[0]}"
            return state + ", no node has it"
        for folder in folders[1:]:
            _, differ, broken = filecmp.cmpfiles(folders[0], folder, MODELS, shallow=False)
            assert not differ and not broken, f"{self.run}: {folders[0]} and {folder} differ in {differ + broken}"
        for folder in folders:
            shutil.rmtree(folder)
        return state


def table(times):
    """Lines: by way, from the death to the next committed step: median, 95 %, worst, and the parts of the median and of the worst."""
    for way, all_parts in sorted(times.items()):
        ordered = sorted(all_parts, key=lambda parts: parts.stepped)
        pick = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        bound = f"peer-timeout + 1 s = {PEER_TIMEOUT + 1:g} s" if way in SILENT else "1 s + the running engine call + the rebuild" + (" (+ 1 s of grace for further goodbyes)" if way == TERM else "")
        yield (f"{way}: {len(ordered)} deaths, to the next committed step median {pick(0.5).stepped:.2f} s, 95 % {pick(0.95).stepped:.2f} s, "
               f"worst {ordered[-1].stepped:.2f} s; beside {bound}")
        for name, parts in (("median", pick(0.5)), ("worst", ordered[-1])):
            yield (f"    {name}: noticed after {parts.noticed:.3f} s, then promised {parts.promised * 1000:.0f} ms, decided {parts.decided * 1000:.0f} ms, "
                   f"rebuilt {parts.rebuilt * 1000:.0f} ms, committed {(parts.stepped - parts.noticed) * 1000:.0f} ms")


@contextlib.contextmanager
def driver(nodes, options):
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network(nodes, cut=True)) if options.links else None
        places = {"hosts": network.addresses, "prefixes": network.prefixes} if network else {}
        mesh = stack.enter_context(Mesh(nodes, settings(network is not None, options.threads), **places))
        yield Kills(mesh, options.seed, options.kinds, network)


def main(description, kinds, nodes, count):
    """The commands tests/hostile/kills and tests/hostile/power."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count, help="trials (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=kinds, help=f"some of {','.join((*KINDS, 'power'))} ({','.join(kinds)})")
    parser.add_argument("--nodes", type=lambda text: [int(one) for one in text.split(",")], default=nodes, help="meshes of so many nodes, one after the other")
    parser.add_argument("--threads", type=int, default=1, help="of a node")
    parser.add_argument("--links", action="store_true", help="training: in network namespaces, links are cut as well (needs root)")
    parser.add_argument("--keep-on", action="store_true", help="after a failure, with new nodes")
    options = parser.parse_args()
    if unknown := set(options.kinds) - {*KINDS, "power"}:
        parser.error(f"--kinds: there is no {', '.join(unknown)}")
    counts, times, failed, began = collections.Counter(), collections.defaultdict(list), [], time.time()
    for index, nodes in enumerate(options.nodes):
        share = list(range(options.first + options.count * index // len(options.nodes), options.first + options.count * (index + 1) // len(options.nodes)))
        while share:
            number = share[0]
            try:
                with driver(nodes, options) as kills:
                    try:
                        while share:
                            number = share.pop(0)
                            kills.trial(number)
                    finally:
                        counts += kills.counts
                        for way, parts in kills.times.items():
                            times[way] += parts
            except Exception:
                print(f"trial {number} of seed {options.seed} with {nodes} nodes failed{' (--links)' if options.links else ''}", file=sys.stderr, flush=True)
                if not options.keep_on:
                    raise
                traceback.print_exc()
                failed.append((nodes, number))
                if share[:1] == [number]:  # no mesh at all
                    share.pop(0)
    print("\n".join(table(times)))
    print(f"seed {options.seed}: {options.count - len(failed)} trials in {time.time() - began:.0f} s, each with one end and one state: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    if failed:
        sys.exit(f"{len(failed)} failed (nodes, number): {failed}")
