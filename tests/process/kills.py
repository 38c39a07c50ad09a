"""Deaths while LeNet trains, at random moments: the others go on and the run COMPLETES, or it is PAUSED and goes on when
the dead are back. For tests/hostile/kills, and ten of them for test_changes.

A trial draws one death, two at once, or one shortly after the other; each by SIGKILL, SIGTERM (a node that is shut down),
SIGSTOP for longer than peer-timeout (SIGCONT later) or, in network namespaces, a cut: in both directions or in one."""

import collections
import datetime
import random
import re
import signal
import time

from asking import FINAL
from files import read_metrics
from history import History
from patience import Elapsed, wait_until

PEER_TIMEOUT = 2.0
STEPS = 120
KILL, TERM, STOP, CUT, ONE_WAY = "SIGKILL", "SIGTERM", "SIGSTOP", "cut", "cut one way"
SIGNALS = {KILL: signal.SIGKILL, TERM: signal.SIGTERM, STOP: signal.SIGSTOP}
SILENT = (STOP, CUT, ONE_WAY)  # nobody tells of it; the others miss a sign of life
PAUSED_FOR = 1.5  # seconds without another state until it is believed


def settings(network=False, threads=1):
    """With more than one thread an exchange has helpers, which a change of view ends and makes anew."""
    return {"peer-timeout": f"{PEER_TIMEOUT:g}s", "threads": threads} | ({"insecure": "true"} if network else {})


class Parts(collections.namedtuple("Parts", "noticed promised decided rebuilt stepped")):
    """Seconds from a death until a node has noticed, and from there until it had promised, learned the decision, begun the
    first step of the new view; and from the death until that step was committed."""


class Changes:
    """The view changes of a run in a node's log, by the number of the new view."""

    def __init__(self, node, run):
        self.node, self.by_view = node, {}
        self.seconds = {row["step"]: row["seconds"] for row in read_metrics(node.run_file(run, "metrics.jsonl"))}
        for line in node.log_text().splitlines():
            if "event=view-changed " in line and f"run={run} " in line:
                words = dict(re.findall(r"([a-z-]+)=([^ \"]+)", line))
                self.by_view[int(words["view"])] = words

    def parts(self, view, death):
        """None where the change was overtaken by another one."""
        words = self.by_view[view]
        if "-" in (words["decided-ms"], words["rebuilt-ms"]):
            return None
        begun = datetime.datetime.fromisoformat(words["ts"].replace("Z", "+00:00")).timestamp()
        promised, decided, rebuilt = (0 if words[part] == "-" else int(words[part]) / 1000 for part in ("promised-ms", "decided-ms", "rebuilt-ms"))
        noticed = begun - rebuilt - death
        return Parts(noticed, promised, decided, rebuilt, begun - death + self.seconds[int(words["from-step"]) + 1])


class Kills:
    """Trials on one mesh. network: of its namespaces, where links can be cut."""

    def __init__(self, mesh, seed, network=None, say=lambda line: None):
        self.mesh, self.seed, self.network, self.say = mesh, seed, network, say
        self.counts = collections.Counter()
        self.times = collections.defaultdict(list)  # Parts by way; of deaths that came alone
        self.excused = collections.defaultdict(list)  # by way: seconds in which a processor was waited for

    def trial(self, number):
        Trial(self, number, random.Random(f"{self.seed}/{number}")).life()


class Trial:
    def __init__(self, kills, number, draw):
        self.kills, self.mesh, self.draw, self.counts = kills, kills.mesh, draw, kills.counts
        self.run = f"kills-{number}"
        self.away = {}  # how, by node
        self.deaths = []  # (way, moment)
        ways = [KILL, KILL, TERM, STOP] + ([CUT, CUT, ONE_WAY] if kills.network else [])
        self.kind = draw.choice(("one", "one", "two at once", "one after the other"))
        victims = draw.sample(self.mesh.nodes, 1 if self.kind == "one" else 2)
        self.plan = [(victim, draw.choice(ways)) for victim in victims]

    def life(self):
        job = self.mesh.job_file({"steps": STEPS, "schedule": "constant", "checkpoint-every": self.draw.choice(("0s", "50ms")),
                                  "evaluate-every": self.draw.choice((0, 10))})
        self.mesh.ctl_ok("start", job, "--id", self.run, "--detach", node=self.draw.randrange(len(self.mesh)))
        self.mesh.wait_for_step(self.run, 1)
        time.sleep(self.draw.uniform(0, 0.6))  # the moment is what is drawn
        elapsed = Elapsed()
        for index, (victim, way) in enumerate(self.plan):
            if index == 1 and self.kind == "one after the other":
                time.sleep(self.draw.uniform(0, 0.8) + (PEER_TIMEOUT if self.plan[0][1] in SILENT and self.draw.random() < 0.5 else 0))
            self.hurt(victim, way)
        paused = self.end()
        excused = elapsed.excused()
        self.come_back()
        wait_until(lambda: f"one end of {self.run} on all nodes: {self.ends()}", lambda: set(self.ends().values()) == {"COMPLETED"})
        history = History.of(self.mesh.nodes, self.run).check()
        self.measure(paused, excused)
        self.kills.say(f"{self.run}: {', '.join(f'{way} of {victim.name}' for victim, way in self.plan)}{' at once' if self.kind == 'two at once' else ''}"
                       f"{', PAUSED' if paused else ''}; {history.summary()}")
        self.mesh.ctl("delete", self.run)
        self.counts["trials"] += 1
        self.counts[self.kind] += 1

    # --- deaths and returns ---

    def hurt(self, victim, way):
        self.deaths.append((way, time.time()))
        self.away[victim] = way
        self.counts[way] += 1
        if way in SIGNALS:
            victim.signal(SIGNALS[way])
        elif way == CUT:
            self.kills.network.isolate(self.mesh.nodes.index(victim))
        else:
            self.kills.network.cut(self.mesh.nodes.index(victim))

    def come_back(self):
        if any(way in (CUT, ONE_WAY) for way in self.away.values()):
            self.kills.network.heal()
        for node, way in self.away.items():
            if way == STOP:
                node.signal(signal.SIGCONT)
            if way in (KILL, TERM):
                status = node.wait()
                if way == TERM and status != 0:
                    raise AssertionError(f"{node.name} was asked to end and ended with {status} (log {node.log})")
                node.start()
        self.away.clear()
        self.mesh.wait_ready()

    # --- what follows ---

    def shown(self):
        """The states on the nodes that nothing was done to."""
        states = {}
        for node in self.mesh.nodes:
            if node in self.away:
                continue
            if not node.alive():
                raise AssertionError(f"{node.name} crashed with {node.process.returncode} (log {node.log})")
            states[node.name] = self.mesh.run(self.run, node)["state"]
        return states

    def end(self):
        """Until the run has COMPLETED where nobody was hurt. Whether it was PAUSED and the dead had to come back."""
        paused, states = False, {}

        def over():
            nonlocal paused, states
            states = self.shown()
            if "PAUSED" in states.values() and set(states.values()) <= {"PAUSED", "RUNNING"} and self.away and self.stays_paused():
                paused = True
                self.counts["PAUSED"] += 1
                self.come_back()
            return all(state in FINAL for state in states.values())

        wait_until(lambda: f"{self.run} ({self.plan}) ends: {states}", over)
        if set(states.values()) != {"COMPLETED"} and not paused:
            raise AssertionError(f"{self.run} ({self.plan}): {states}")
        return paused

    def stays_paused(self):
        until = time.time() + PAUSED_FOR + (PEER_TIMEOUT if any(way in SILENT for way in self.away.values()) else 0)
        while time.time() < until:
            if "PAUSED" not in self.shown().values():
                return False
            time.sleep(0.1)
        return set(self.shown().values()) == {"PAUSED"}

    def ends(self):
        return {node.name: node.record(self.run)["state"] for node in self.mesh.nodes}

    def measure(self, paused, excused):
        if paused or self.kind != "one":
            return
        (way, death), victim = self.deaths[0], self.plan[0][0]
        last = [Changes(node, self.run).parts(2, death) for node in self.mesh.nodes if node is not victim]
        if None not in last:
            self.kills.times[way].append(max(last, key=lambda parts: parts.stepped))
            self.kills.excused[way].append(excused)


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
