"""Designs on their own: sketch two halves of a stream on two machines, merge, and know the error for certain.

Run: python examples/sketch_a_stream.py
"""

import numpy as np

import onepass as op


def main() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4000, 300)) * 0.98 ** np.arange(300)
    here, there = (op.FrequentDirections(dim=300, size=40, reg=1.0) for _ in range(2))
    here.append(rows[:2000])
    there.append(rows[2000:])
    here.merge(there)

    exact = np.eye(300) + rows.T @ rows
    error = np.linalg.norm(exact - here.matrix(), 2)
    print(
        f"spectral error {error:.1f}, certified {here.error_bound():.1f}, of a norm of {np.linalg.norm(exact, 2):.1f}"
    )
    print(f"{here.memory_usage() / 1e3:.0f} kB instead of {exact.nbytes / 1e3:.0f} kB")
    assert error <= here.error_bound()


if __name__ == "__main__":
    main()
