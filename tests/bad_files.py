"""Bad files: damaged ones, and crafted ones with a correct digest."""

import json

import numpy as np
from safetensors.numpy import save

from onepass.foundation import files
from onepass.foundation.registry import list_classes

KINDS = [kind.__name__ for kind in list_classes(object)]
MANY = 10**6
DEEP = json.loads("[" * 60 + "]" * 60)


def tower(height):
    """Return nested kernels."""
    return {"kind": "Scaled", "kernel": tower(height - 1), "scale": 1.0} if height else {"kind": "RBF"}


VALUES = [
    None, True, False, -1, 0, 1, 2, 3, 5, 64, 9000, 10**6, 10**9, 2**31, 2**53, 2**62, 2**63, 2**64, 10**30, -(10**30),
    10**400, 0.0, -1.5, 0.5, 1.0, 2.5, 1e-320, 1e-200, 1e150, 1e308, float("nan"), float("inf"), -float("inf"), "",
    "x", "float32", "float64", "inf", "\x00", "a" * 5000, [], [1], [[1.0, 2.0]], [None], {}, {"kind": "Exact"},
    {"kind": "Exact", "dim": 9000}, {"kind": "Exact", "dim": -1}, {"kind": "UCB", "exploration": 1e300},
    {"kind": "Greedy"}, {"kind": ["Exact"]}, {"kind": {}}, {"kind": "RBF", "length_scale": [1.0] * 9}, {"other": 1},
    {"kind": "Nystrom", "points": [[float(i)] for i in range(800)], "kernel": {"kind": "RBF"}, "reduced": True},
    {"kind": "GaussianProjection", "dim": 10**7, "size": 10**4, "seed": 0}, {"kind": "Standardize", "dim": 4},
    {"kind": "OuterProduct", "left": 2, "right": 2}, DEEP, tower(9), tower(300),
]  # fmt: skip


def header_paths(value, above=()):
    """Yield the paths of all values in a header."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(pairs)[:40]:
        yield (*above, key)
        yield from header_paths(part, (*above, key))


def change_header(rng, header, tensors):
    where = list(header_paths(header))
    *path, last = where[rng.integers(len(where))]
    holder = header
    for key in path:
        holder = holder[key]
    way = rng.integers(8)
    if way == 0 and isinstance(holder, dict):
        del holder[last]
    elif way == 1 and isinstance(holder, dict):
        holder[["own", "kind", "dim", "reg", ""][rng.integers(5)]] = VALUES[rng.integers(len(VALUES))]
    elif way == 2 or last == "kind":
        holder[last] = KINDS[rng.integers(len(KINDS))]
    elif way == 3 and type(holder[last]) in (int, float):
        holder[last] = [holder[last] + 1, holder[last] - 1, -holder[last], 2 * holder[last], float(holder[last])][
            rng.integers(5)
        ]
    else:
        holder[last] = json.loads(json.dumps(VALUES[rng.integers(len(VALUES))]))


EXTREMES = [0, 1, -1, 2, 63, 64, 2**31, 2**62, -(2**63)]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e-160, 1e150, 1e300, -1e300, 1.7e308, np.nan, np.inf, -np.inf]


def reshape_array(rng, array):
    """Return an array of the same dtype in another shape."""
    shape = list(array.shape) or [1]
    axis = rng.integers(len(shape))
    shape[axis] = int([0, 1, shape[axis] + 1, max(shape[axis] - 1, 0), 2 * shape[axis], 500][rng.integers(6)])
    way = rng.integers(6)
    if way == 0:
        shape = [*shape, 1]
    elif way == 1:
        shape = shape[::-1]
    elif way == 2:
        shape = [0, 2**40][: max(len(shape), 1)]
    elif way == 3:
        shape = shape[1:]
    return np.resize(array, shape) if array.size and 0 not in shape else np.zeros(shape, array.dtype)


def refill_array(rng, array):
    """Return an array of the same shape with other numbers."""
    out, flat = array.copy(), None
    flat = out.reshape(-1)
    if not flat.size:
        return out
    pool = EXTREMES if array.dtype.kind == "i" else [0, 1, 34, 91, 255] if array.dtype.kind == "u" else NUMBERS
    pool = [False, True] if array.dtype.kind == "b" else pool
    with np.errstate(over="ignore"):
        value = np.array(pool[rng.integers(len(pool))]).astype(array.dtype)
    way = rng.integers(4)
    if way == 0:
        flat[:] = value
    elif way == 1:
        rng.shuffle(flat)
    elif way == 2 and array.dtype.kind == "i":
        flat[rng.integers(flat.size)] += [-2, -1, 1, 2][rng.integers(4)]
    else:
        flat[rng.integers(flat.size)] = value
    return flat.reshape(array.shape)


DTYPES = [np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16]


def change_arrays(rng, header, tensors):
    names = sorted(tensors)
    if not names:
        return
    name, other = names[rng.integers(len(names))], names[rng.integers(len(names))]
    way = rng.integers(8)
    if way == 0:
        del tensors[name]
    elif way == 1:
        tensors[f"{name}{['', '.0', 'x'][rng.integers(3)]}"] = tensors.pop(other)
    elif way == 2:
        tensors[name], tensors[other] = tensors[other], tensors[name]
    elif way == 3:
        with np.errstate(all="ignore"):
            tensors[name] = tensors[name].astype(DTYPES[rng.integers(len(DTYPES))])
    elif way in (4, 5):
        tensors[name] = reshape_array(rng, tensors[name])
    else:
        tensors[name] = refill_array(rng, tensors[name])


def resize_all(rng, header, tensors):
    """Replace one length everywhere, in the header, too: the sizes still agree with each other."""
    lengths = sorted({n for array in tensors.values() for n in array.shape})
    if not lengths:
        return
    old, new = int(lengths[rng.integers(len(lengths))]), int([0, 1, 2, 7, 200][rng.integers(5)])
    for name, array in tensors.items():
        shape = [new if n == old else n for n in array.shape]
        if max(shape, default=0) < MANY:
            tensors[name] = np.resize(array, shape) if array.size and 0 not in shape else np.zeros(shape, array.dtype)
    for path in header_paths(header):
        holder = header
        for key in path[:-1]:
            holder = holder[key]
        if holder[path[-1]] == old and type(holder[path[-1]]) is int:
            holder[path[-1]] = new


WAYS = (change_header, change_header, change_arrays, change_arrays, change_arrays, resize_all)


def craft_file(rng, data):
    """Return a file that is changed in one to three places and has a correct digest."""
    header, tensors = files.read(data)
    tensors = dict(tensors)
    header = {key: header[key] for key in ("kind", "params", "extra", "version")}
    for _ in range(rng.integers(1, 4)):
        WAYS[rng.integers(len(WAYS))](rng, header, tensors)
    return encode_file(header, tensors)


def encode_file(header, tensors):
    """Return a file with this header, these arrays and a correct digest."""
    tensors = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in tensors.items()}
    return save(tensors, metadata={"onepass": json.dumps(header), "digest": files._digest(tensors, header)})


def damage_file(rng, data, others):
    """Return a file with flipped bits, cut, lengthened, or with a piece of another file in it."""
    out, way = bytearray(data), rng.integers(5)
    if way == 0:
        for _ in range(rng.integers(1, 9)):
            out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    elif way == 1:
        del out[rng.integers(len(out)) :]
    elif way == 2:
        out += bytes(rng.integers(0, 256, rng.integers(1, 99), np.uint8))
    else:
        other = others[rng.integers(len(others))] if way == 3 else data
        start, length = rng.integers(len(out)), rng.integers(1, 64)
        place = rng.integers(len(other))
        out[start : start + length] = other[place : place + length]
    return bytes(out)
