"""How long a run that is struck by one fault after the other takes to go on, and a node to come back into it."""

import collections
import itertools
import time

from changes import seconds_of

TORCHFT = "published, of torchft's users: 12 to 14 s, 73 to 86 s"
NEVER = float("inf")

Event = collections.namedtuple("Event", "at kind node")  # node: its name; None: all


class Recovery:
    """One run's: what was done to it, and when its steps were made, in which view, as its nodes' files tell it; what a later resume
    gave up stays known."""

    def __init__(self):
        self.faults, self.returns = [], []
        self.made, self.members = {}, {}  # by lineage, view and step; by lineage and view

    def fault(self, kind, node=None):
        self.faults.append(Event(time.time(), kind, node and node.name))

    def back(self, kind, node=None):
        self.returns.append(Event(time.time(), kind, node and node.name))

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
        """The first one of a view that begins after that moment, or the third one: two may have been in flight."""
        return min(self.member(at, None), *sorted(made for made in self.made.values() if made > at)[2:3], NEVER)

    def member(self, at, node):
        """The first step of a view with that node which begins after that moment."""
        firsts = {}
        for (lineage, view, _), made in self.made.items():
            firsts[lineage, view] = min(made, firsts.get((lineage, view), NEVER))
        return min((first for view, first in firsts.items() if first > at and (node is None or node in self.members[view])), default=NEVER)

    def measure(self, times):
        """Adds seconds by kind. Until the run's next step: after the fault, or after the last return where there was one before. Until a node
        is a member: after its return, unless it was struck again before."""
        for fault in self.faults:
            made = self.next_step(fault.at)
            backs = [one.at for one in self.returns if fault.at < one.at < made]
            if made < NEVER and (not backs or fault.kind in ("flap", "kill all")):
                times[fault.kind].append(made - fault.at)
            elif made < NEVER:
                times[f"{fault.kind}, no step before something was back: from then"].append(made - max(backs))
        past = collections.Counter()
        for one in self.returns:
            made = self.member(one.at, one.node)
            if one.kind in ("start", "join") and made < min((other.at for other in self.faults if other.at > one.at and other.node in (one.node, None)), default=NEVER):
                past[one.node] += 1
                times[f"{one.kind} of a node: until it is a member" + (", again: it has to wait, 10 s and more" if past[one.node] > 1 else "")].append(made - one.at)


def table(times):
    """Lines: by kind, count, median, 90 %, worst."""
    yield f"{'seconds':70} {'count':>5} {'median':>7} {'90 %':>7} {'worst':>7}"
    for kind, seconds in sorted(times.items()):
        ordered = sorted(seconds)
        pick = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        yield f"{kind:70} {len(ordered):5} {pick(0.5):7.2f} {pick(0.9):7.2f} {ordered[-1]:7.2f}"
    yield TORCHFT
