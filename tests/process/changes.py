"""Changes of a run's members, as logs and files of its nodes tell them, for tests."""

import collections
import datetime
import re

from asking import FINAL
from files import read_metrics
from history import History
from patience import wait_until
from resuming import intervals

Change = collections.namedtuple("Change", "view members start why at words")  # at: time.time() of its line in the log; words: all of the line


def seconds_of(timestamp):
    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def changes(node, run):
    found = []
    for line in re.findall(r"^.* event=view-changed .*$", node.log_text(), re.MULTILINE):
        words = {key: value.strip('"') for key, value in re.findall(r'([a-z-]+)=("(?:[^"\\]|\\.)*"|\S*)', line)}
        if words.get("run") == run and "why" in words:  # a node that was killed may have torn its last line
            found.append(Change(int(words["view"]), int(words["members"]), int(words["from-step"]), words["why"], seconds_of(words["ts"]), words))
    return found


def wait_for_change(node, run, members=None, patience=None):
    """The first change on this node, or the first to a view of so many members."""
    def there():
        return next((one for one in changes(node, run) if members in (None, one.members)), None)

    return wait_until(lambda: f"{node.name} (log {node.log}) goes on with {members or 'other'} members of {run}: {changes(node, run)}", there, patience)


def wait_recorded(node, run, state, patience=None):
    """Until the node's record says so; the record."""
    wait_until(lambda: f"{node.name} (log {node.log}) has recorded that {run} is {state}: {node.record(run)['state']}, {node.record(run)['reason']}",
               lambda: node.record(run)["state"] == state, patience)  # fmt: skip
    return node.record(run)


def check_end(nodes, run):
    """Checks the records of a run that has ended on the nodes that went on with it: one end with one digest, each step once, and a
    line for each view. Returns those lines."""
    History.of(nodes, run).check()
    records = [node.record(run) for node in nodes]
    ends = {(record["state"], record["step"], record["digest"]) for record in records}
    assert len(ends) == 1 and records[0]["state"] in FINAL and records[0]["digest"], f"{run} ended as {ends}"
    for node, record in zip(nodes, records):
        steps = [row["step"] for row in read_metrics(node.run_file(run, "metrics.jsonl"))]
        assert len(steps) == record["step"], f"{run} on {node.name}: metrics of steps {steps}"
    return intervals(nodes[0], run)
