"""Means of a few runs."""

import statistics

T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # Student's, two-sided 95 %, by degrees of freedom


def interval(values):
    """Mean and half the width of its 95 % interval, which one value does not have."""
    values = list(values)
    if len(values) < 2:
        return values[0], None
    return statistics.fmean(values), T[min(len(values) - 1, len(T)) - 1] * statistics.stdev(values) / len(values) ** 0.5
