"""A small line chart in SVG: series of (x, y) or (x, y, half width of an interval), side by side in panels."""

import math

WIDTH, HEIGHT, PAD, HEADING = 420, 280, 46, 30
COLOURS = ("#2c6fbb", "#c0392b", "#2e8b57", "#8e44ad", "#d68910", "#555555", "#16a085", "#7f3b08")


def escaped(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def round_values(low, high, logarithmic):
    """Some values that are easily read, the first at or below low, the last at or above high."""
    if logarithmic:
        return [10.0 ** k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit * 6 >= high - low)
    return [step * k for k in range(math.floor(low / step), math.ceil(high / step) + 1)]


def panel(x0, title, series, low, high, ticks=None, colours=None, logarithmic=False):
    """series: name -> points. ticks: the x axis as places of equal distance (members, rows); None: a scale from 0 (steps), or,
    as the y axis then is, a logarithmic one."""
    scale = math.log if logarithmic else float
    xs = [point[0] for points in series.values() for point in points] or [1]
    rows, columns = round_values(low, high, logarithmic), ticks or round_values(min(xs) if logarithmic else 0, max(xs), logarithmic)
    low, high, first, last = rows[0], rows[-1], columns[0], columns[-1]

    def share(value, begin, end):
        return (scale(value) - scale(begin)) / (scale(end) - scale(begin))

    def place(x, y):
        along = (ticks.index(x) + 0.5) / len(ticks) if ticks else share(x, first, last)
        up = share(min(max(y, low), high), low, high)
        return x0 + PAD + (WIDTH - 1.4 * PAD) * along, HEIGHT - PAD - (HEIGHT - 1.8 * PAD) * up

    left, right = x0 + PAD, x0 + WIDTH - 0.4 * PAD
    out = [f'<text x="{x0 + WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{escaped(title)}</text>']
    for value in rows:
        y = place(columns[0], value)[1]
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end" font-size="10">{value:.6g}</text>')
    for x in columns if not isinstance(columns[0], str) else ():  # the legend has the names
        out.append(f'<text x="{place(x, low)[0]:.1f}" y="{HEIGHT - PAD + 16}" text-anchor="middle" font-size="10">{x if ticks else format(x, ".6g")}</text>')
    for i, (name, points) in enumerate(series.items()):
        colour = (colours or {}).get(name, COLOURS[i % len(COLOURS)])
        path = " ".join("%.1f,%.1f" % place(*point[:2]) for point in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.2" opacity="0.8"/>')
        for x, y, half in (point for point in points if len(point) == 3):
            (across, top), (_, bottom) = place(x, y + half), place(x, y - half)
            out.append(f'<line x1="{across:.1f}" y1="{top:.1f}" x2="{across:.1f}" y2="{bottom:.1f}" stroke="{colour}"/>'
                       f'<circle cx="{across:.1f}" cy="{place(x, y)[1]:.1f}" r="2.5" fill="{colour}"/>')
    return "\n".join(out)


def picture(panels, names, colours=None, title=""):
    """panels: functions of x0. names: the legend, in the order of the series."""
    body = "".join(draw(WIDTH * i) for i, draw in enumerate(panels))
    top = -HEADING if title else 0
    if title:
        body += f'<text x="{PAD}" y="-10" font-size="15" font-weight="bold">{escaped(title)}</text>'
    x = PAD
    for i, name in enumerate(names):
        colour = (colours or {}).get(name, COLOURS[i % len(COLOURS)])
        body += f'<text x="{x}" y="{HEIGHT - 6}" font-size="12" fill="{colour}">{escaped(name)}</text>'
        x += 20 + 7 * len(name)  # a letter takes some 7
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT - top}" '
            f'viewBox="0 {top} {WIDTH * len(panels)} {HEIGHT - top}" font-family="sans-serif">'
            f'<rect y="{top}" width="100%" height="100%" fill="white"/>{body}</svg>\n')


def smooth(points, window=50, most=400):
    """Means of `window` points that end at each of some `most`."""
    every = max(1, len(points) // most)
    sums = [0.0]
    for _, y in points:
        sums.append(sums[-1] + y)
    return [(points[i][0], (sums[i + 1] - sums[max(0, i + 1 - window)]) / (i + 1 - max(0, i + 1 - window))) for i in range(0, len(points), every)]
