#!/usr/bin/env python3
"""curves.py RUNS_DIR OUT.svg: loss and accuracy of ternary and float32 runs in one picture, and the bounds of the recipe."""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "paper"))
import chart

LEAST_ACCURACY = 0.987  # every ternary run, moving average
MOST_GAP = 0.004        # mean of ternary to mean of float32
MOST_DEATH_GAP = 0.002  # mean of ternary to mean of ternary with a node that dies, or with one after the other
COLOURS = {"ternary": "#c0392b", "float32": "#2c6fbb"}


def load(folder):
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return chart.smooth([(r["step"], r["loss"]) for r in rows]), [(r["step"], r["accuracy"]) for r in rows if "accuracy" in r]


def main(runs, picture):
    final, losses, accuracies = {"ternary": [], "float32": [], "death": [], "returns": []}, [], []
    for folder in sorted(runs.iterdir()):
        kind = folder.name.rsplit("-", 1)[0]
        if kind not in final:
            continue
        smooth, accuracy = load(folder)
        if kind in COLOURS:
            losses.append((kind, smooth))
            accuracies.append((kind, accuracy))
        final[kind].append(accuracy[-1][1])
    final = {kind: values for kind, values in final.items() if values}
    for kind, values in final.items():
        print(f"{kind:8} " + "  ".join(f"{100 * v:.2f} %" for v in values) + f"   mean {100 * statistics.fmean(values):.2f} %")
    if not {"ternary", "float32"} <= final.keys():
        print("no ternary and float32 runs beside them: nothing to compare with")
        return 0
    runs = {f"{kind} x {len(final[kind])}": COLOURS[kind] for kind in COLOURS}

    def named(curves):
        return {f"{kind} {i}": points for i, (kind, points) in enumerate(curves)}

    colours = {name: COLOURS[name.split()[0]] for name in named(losses)} | runs
    picture.write_text(chart.picture(
        [lambda x0: chart.panel(x0, "training loss (mean of 50 steps)", named(losses), 0, 0.6, lambda v: f"{v:.2f}", colours=colours),
         lambda x0: chart.panel(x0, "test accuracy (moving average of the parameters)", named(accuracies), 0.94, 1.0, lambda v: f"{100 * v:.1f} %",
                                colours=colours)], list(runs), colours))
    gap = statistics.fmean(final["float32"]) - statistics.fmean(final["ternary"])
    lost = {kind: statistics.fmean(final["ternary"]) - statistics.fmean(final[kind]) for kind in ("death", "returns") if kind in final}
    print(f"float32 - ternary = {100 * gap:+.2f} points" + "".join(f", ternary - {kind} = {100 * one:+.2f}" for kind, one in lost.items()) + f"; picture: {picture}")
    good = min(final["ternary"]) >= LEAST_ACCURACY and abs(gap) <= MOST_GAP and all(abs(one) <= MOST_DEATH_GAP for one in lost.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
