"""What the nodes of a run have on their disks, checked against the promises of a view change (DESIGN.md, section 6b):

P1  no two views of one run key and number differ: members, weights, and the state that they begin with
P2  all confirmed states lie on one line: all nodes that confirmed a step record the same loss of it, to the last bit, and the
    same digests of a state, but for what a resume gave up that resumed from before it
P3  a view begins with a step that no member has gone beyond in the one before, and one step before what a member has
    committed at the most

and that metrics.jsonl has each step once, views.jsonl a line for each view. Reads run.json, views.jsonl and metrics.jsonl
of every node that has them: of processes that were killed, too, whose last lines may be missing or torn.

    History.of(mesh.nodes, run).check()

As a command: of the simulator's schedules, as tgd_test_schedules writes them.

    tests/process/history.py FILE
"""

import collections
import json
import os
import sys
import time

from asking import FINAL

# A interval of one node: what it says of a view that it was a member of, or was told of when it came in. complete: the view has ended for it.
ViewInterval = collections.namedtuple("ViewInterval", "node lineage key view members weights start digest to_step ended")
START = ("members", "weights", "start", "digest")


def _lines(path):
    """The whole lines; a process that was killed may have left a torn one."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return [json.loads(line) for line in file.read().split(b"\n")[:-1] if line]


def _interval(node, fields, members, to_step, ended):
    start = fields["from"]
    return ViewInterval(node, fields["lineage"], fields["key"], fields["view"], tuple(members), tuple(fields["weights"]), start["step"], start["digest"], to_step, ended)


class Story:
    """One node's. The last line of one that has ended may be of a step that was committed and not confirmed, from which a
    resume could have gone on: its record ends one step before. That is no promise to anyone."""

    def __init__(self, name, record, views, metrics):
        ahead = record["state"] in FINAL and metrics and metrics[-1]["step"] == record["own"]["step"] + 1
        self.name, self.record, self.metrics = name, record, metrics[:-1] if ahead else metrics
        self.past = [_interval(name, line, line["members"], line["to_step"], line["ended"]) for line in views]
        last = self.past[-1] if self.past else None
        if not last or (last.lineage, last.view) != (record["lineage"], record["view"]):
            self.present = _interval(name, record, record["members"], None, None)
        else:
            self.present = None

    @classmethod
    def read(cls, node, run):
        path = node.run_file(run, "run.json")
        if not os.path.exists(path):
            return None
        with open(path) as file:
            record = json.load(file)
        if record["state"] not in FINAL:
            record["digest"] = ""  # compared before the average had moved: another one than that of the state
        return cls(node.name, record, _lines(node.run_file(run, "views.jsonl")), _lines(node.run_file(run, "metrics.jsonl")))

    @classmethod
    def simulated(cls, life, digests):
        """The history of one process of a schedule. digests: that schedule's states', as a node has seen them first."""
        states = sorted((int(step), format(digest, "016x")) for step, digest in life["states"].items())
        step, digest = states[-1]
        views = [{"lineage": 1, "key": "", "from": {"step": view["start"], "digest": digests[view["start"]]}, "to_step": None, "ended": None} | view for view in life["views"]]
        record = {"state": "RUNNING", "lineage": 1, "view": views[-1]["view"], "digest_step": step, "digest": digest}
        return cls(life["node"], record, views, [{"step": step, "loss": digest, "learning_rate": 0} for step, digest in states])

    def intervals(self):
        return self.past + ([self.present] if self.present else [])


class History:
    def __init__(self, stories):
        self.stories = stories

    @classmethod
    def of(cls, nodes, run):
        return cls([story for story in (Story.read(node, run) for node in nodes) if story is not None])

    @classmethod
    def simulated(cls, lives):
        digests = {int(step): format(digest, "016x") for life in reversed(lives) for step, digest in life["states"].items()}
        return cls([Story.simulated(life, digests) for life in lives])

    @classmethod
    def live(cls, nodes, run, looks=5):
        """Of nodes that write meanwhile: what files of two moments seem to break is looked at again; a broken promise stays broken."""
        history = cls.of(nodes, run)
        if looks == 1 or not history.problems():
            return history.check()
        time.sleep(0.3)
        return cls.live(nodes, run, looks - 1)

    def check(self):
        problems = self.problems()
        if problems:
            raise AssertionError("the history of this run breaks a promise:\n" + "\n".join(f"    {problem}" for problem in problems))
        return self

    def problems(self):
        return [*self.promises(), *self._lines_once(), *self._files()]

    def promises(self):
        return [*self._views(), *self._states(), *self._starts()]

    def views(self):
        """One interval of each view, by key and number."""
        views = {}
        for story in self.stories:
            for interval in story.intervals():
                views.setdefault((interval.key, interval.view), interval)
        return views

    def _views(self):
        views = self.views()
        for story in self.stories:
            for interval in story.intervals():
                first = views[interval.key, interval.view]
                if story.name not in interval.members and interval is story.intervals()[-1]:  # else the senior that admitted it said so
                    yield f"P1: {story.name} has a line of view {interval.view}, whose members are {interval.members}"
                for field in START:
                    if getattr(first, field) != getattr(interval, field):
                        yield f"P1: view {interval.view} of {first.node} and {interval.node} differ: {field} {getattr(first, field)} and {getattr(interval, field)}"

    def _states(self):
        told = {}
        digests, beginnings = {}, {interval.lineage: interval.start for interval in self.views().values() if interval.view == 1}

        def stale(story, step):
            """A later lineage began further back, and this node has not come into it yet."""
            newest = max(interval.lineage for interval in story.intervals())
            return any(lineage > newest and start < step for lineage, start in beginnings.items())

        for story in self.stories:
            for row in story.metrics:
                if stale(story, row["step"]):
                    break
                facts = {"loss": row["loss"], "learning_rate": row["learning_rate"]} | ({"evaluation": row["evaluation"]} if row.get("evaluation") else {})
                for what, value in facts.items():
                    who, first = told.setdefault((what, row["step"]), (story.name, value))
                    if first != value:
                        yield f"P2: {what} of step {row['step']}: {who} has {first}, {story.name} has {value}"

        def given_up(interval):
            """A later lineage began further back: no node's checkpoint had that state."""
            return any(lineage > interval.lineage and start < interval.start for lineage, start in beginnings.items())

        for story in self.stories:
            known = [(interval.start, interval.digest) for interval in story.intervals() if interval.view > 1 and not given_up(interval)]
            if not stale(story, story.record["digest_step"]):
                known.append((story.record["digest_step"], story.record["digest"]))
            for step, digest in [one for one in known if one[1].strip("0")]:  # a process that was killed early has told none
                who, first = digests.setdefault(step, (story.name, digest))
                if first != digest:
                    yield f"P2: state {step}: {who} has digest {first}, {story.name} has {digest}"

    def _starts(self):
        """A node that was a member for the last time in a view has confirmed no more than what the next one begins with."""
        views = self.views()
        for story in self.stories:
            own = {(interval.key, interval.view) for interval in story.intervals()}
            newest = max(interval.lineage for interval in story.intervals())  # the one that metrics.jsonl is of
            for interval in story.intervals():
                following = views.get((interval.key, interval.view + 1))
                if following is None:
                    continue
                goes_on = (interval.key, interval.view + 1) in own
                told = [row["step"] for row in story.metrics] if interval.lineage == newest else []
                confirmed = max([interval.to_step or 0, *told])
                if not goes_on and confirmed > following.start:
                    yield f"P3: {story.name} has confirmed step {confirmed} in view {interval.view}; view {following.view} begins with {following.start}"
                if goes_on and interval.to_step is not None and interval.to_step != following.start:
                    yield f"P3: {story.name} ends view {interval.view} at step {interval.to_step}; view {following.view} begins with {following.start}"
                if following.start < interval.start:
                    yield f"P3: view {following.view} begins with step {following.start}, the one before with {interval.start}"

    def _lines_once(self):
        last = max((interval.lineage, interval.view) for interval in self.views().values()) if self.stories else None
        for story in self.stories:
            steps = [row["step"] for row in story.metrics]
            if steps != list(range(1, len(steps) + 1)):
                missing = sorted(set(range(1, max(steps, default=0) + 1)) - set(steps))
                twice = sorted(step for step, count in collections.Counter(steps).items() if count > 1)
                yield f"metrics.jsonl of {story.name}: of {len(steps)} lines, missing steps {missing}, twice {twice}, in order: {steps == sorted(steps)}"
            was_there_at_its_end = last in {(interval.lineage, interval.view) for interval in story.past}
            if story.record["state"] in ("COMPLETED", "STOPPED") and story.record["own"]["save"] == "saved" and was_there_at_its_end and len(steps) != story.record["step"]:
                yield f"metrics.jsonl of {story.name} has {len(steps)} lines, the run came to step {story.record['step']}"

    def _files(self):
        for story in self.stories:
            for lineage in sorted({interval.lineage for interval in story.past}):
                numbers = [interval.view for interval in story.past if interval.lineage == lineage]
                if numbers != list(range(1, len(numbers) + 1)):
                    yield f"views.jsonl of {story.name} has views {numbers} of lineage {lineage}"

    def summary(self):
        return ", ".join(f"view {view.view} of {len(view.members)} from {view.start}" for _, view in sorted(self.views().items(), key=lambda one: one[0][1]))


def main():
    schedules = collections.defaultdict(list)
    for life in _lines(sys.argv[1]):
        schedules[life["schedule"]].append(life)
    changes = 0
    for seed, lives in schedules.items():
        history = History.simulated(lives)
        changes += len(history.views()) - 1
        if problems := history.promises():
            sys.exit("\n    ".join([f"schedule {seed} breaks a promise:", *problems]))
    if changes == 0:
        sys.exit(f"{sys.argv[1]} has no change of a view: nothing was checked")
    print(f"{len(schedules)} schedules, {sum(map(len, schedules.values()))} processes, {changes} changes: every promise is kept")


if __name__ == "__main__":
    main()
