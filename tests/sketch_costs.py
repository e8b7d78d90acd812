"""Processor time of a row by other schedules of decompositions: python tests/sketch_costs.py prints the table.

Times are divided by that of a row of `FrequentDirections`, which decomposes 2 * size rows once in `size` rows.
Gu-Eisenstat updates and a decomposition at every row are timed by one part of their work each, so they take longer.
"""

from time import process_time

import numpy as np

import onepass as op

SIZES = ((784, 50), (784, 100), (128, 20))


def seconds(call, count):
    """Processor time of a call, the least of five means over `count` calls."""
    call()
    times = []
    for _ in range(5):
        began = process_time()
        for _ in range(count):
            call()
        times.append((process_time() - began) / count)
    return min(times)


def ratios(dim, size):
    """Times of a decomposition at every row, and of the product of a Gu-Eisenstat update, over the time of a row."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4 * size, dim)) * 0.97 ** np.arange(dim)
    design = op.FrequentDirections(dim=dim, size=size).append(rows)
    row = seconds(lambda: design.append(rows), 3) / len(rows)
    kept, square = rows[:size].copy(), rng.standard_normal((size, size))

    def decompose():
        _, vectors = np.linalg.eigh(kept @ kept.T)
        return vectors.T @ kept

    return seconds(decompose, 20) / row, seconds(lambda: square @ kept, 100) / row


if __name__ == "__main__":
    for dim, size in SIZES:
        every, product = ratios(dim, size)
        print(f"| {dim} | {size} | {every:.1f} | {product:.1f} |")
