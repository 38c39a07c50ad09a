#!/usr/bin/env python3
"""curves.py RUNS_DIR OUT.svg: loss and accuracy of ternary and float32 runs in one picture, and the bounds of the recipe."""

import json
import pathlib
import statistics
import sys

LEAST_ACCURACY = 0.987  # every ternary run, moving average
MOST_GAP = 0.004        # mean of ternary to mean of float32
MOST_DEATH_GAP = 0.002  # mean of ternary to mean of ternary with a node that dies, or with one after the other
COLOURS = {"ternary": "#c0392b", "float32": "#2c6fbb"}
WIDTH, HEIGHT, PAD = 420, 260, 46


def load(folder):
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    window = 50
    losses = [r["loss"] for r in rows]
    smooth = [(rows[i]["step"], statistics.fmean(losses[max(0, i - window + 1):i + 1])) for i in range(0, len(rows), 10)]
    return smooth, [(r["step"], r["accuracy"]) for r in rows if "accuracy" in r]


def panel(x0, title, curves, low, high, last, label):
    def place(step, value):
        return (x0 + PAD + (WIDTH - 1.4 * PAD) * step / last,
                HEIGHT - PAD - (HEIGHT - 1.8 * PAD) * (min(max(value, low), high) - low) / (high - low))

    out = [f'<text x="{x0 + WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{title}</text>']
    for i in range(5):
        value = low + (high - low) * i / 4
        x, y = place(0, value)
        end, _ = place(last, value)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{x - 5}" y="{y + 4:.1f}" text-anchor="end" font-size="10">{label(value)}</text>')
        step = last * i / 4
        x, y = place(step, low)
        out.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle" font-size="10">{step:.0f}</text>')
    for kind, points in curves:
        path = " ".join("%.1f,%.1f" % place(*p) for p in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[kind]}" stroke-width="1.2" opacity="0.8"/>')
    return "\n".join(out)


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
    last = max(p[0] for _, points in losses for p in points)
    body = (panel(0, "training loss (mean of 50 steps)", losses, 0, 0.6, last, lambda v: f"{v:.2f}") +
            panel(WIDTH, "test accuracy (moving average of the parameters)", accuracies, 0.94, 1.0, last,
                  lambda v: f"{100 * v:.1f} %"))
    for i, kind in enumerate(COLOURS):
        y = HEIGHT - 6
        body += (f'<text x="{WIDTH - 80 + 110 * i}" y="{y}" font-size="12" fill="{COLOURS[kind]}">'
                 f'{kind} x {len(final[kind])}</text>')
    picture.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{HEIGHT}" '
                       f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>{body}</svg>\n')
    gap = statistics.fmean(final["float32"]) - statistics.fmean(final["ternary"])
    lost = {kind: statistics.fmean(final["ternary"]) - statistics.fmean(final[kind]) for kind in ("death", "returns") if kind in final}
    print(f"float32 - ternary = {100 * gap:+.2f} points" + "".join(f", ternary - {kind} = {100 * one:+.2f}" for kind, one in lost.items()) + f"; picture: {picture}")
    good = min(final["ternary"]) >= LEAST_ACCURACY and abs(gap) <= MOST_GAP and all(abs(one) <= MOST_DEATH_GAP for one in lost.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
