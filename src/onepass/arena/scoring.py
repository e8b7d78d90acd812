"""Scoring in an arena: predicted rewards and x^T A^-1 x of many arms, for one context or for many users at once.

For a row x of an arm with directions Q, root R and weights w, the scores are

    p = Q x,   x^T theta = w^T p + o^T x / ridge,   x^T A^-1 x = (||x||^2 - ||p||^2) / ridge + ||R^T p||^2

The cost is one pass over the directions of the arms, then O(m^2) for an arm of m directions. The symbols are explained
in arena.py.
"""

from typing import Any

import numpy as np

from onepass.arena.arena import NONE, ArenaState, sums_of
from onepass.arena.rewards import radius_of_arm, unit_of_arms
from onepass.design.subspace import digits_lost, inverse_quadratic_in
from onepass.estimator.radii import Constants, Facts
from onepass.features.outer_product import contract_right, fill_product
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, squared_norms

PROJECTED = 4_000_000  # products of users and slots that are kept at a time
SHORT = 128  # numbers of a row up to which a loop is faster than a product by BLAS
PRODUCT = 64.0  # roundings of ||x||^2 below which what is left of it outside counts as nothing, where x is not at hand


@compiled
def count_untrained(arm_ids: np.ndarray) -> int:
    """Count the arms that have never learned, those with the id NONE."""
    count = 0
    for a in range(arm_ids.size):
        count += arm_ids[a] == NONE
    return count


@compiled
def project_arm(arena: ArenaState, arm_id: int, row: np.ndarray, out: np.ndarray) -> None:
    """Write q^T x for every direction q of one arm, and o^T x, to the array `out` (slots,).

    A slot is a row of the arena that holds one direction q, or the vector o, of one arm. o is the part of the sum of
    reward times row that lies outside the directions.
    """
    slot = arena.first[arm_id]
    for _ in range(arena.used[arm_id]):
        out[slot] = dot(arena.basis[slot], row)
        slot = arena.link[slot]
    slot = arena.outside[arm_id]
    if slot != NONE:
        out[slot] = dot(arena.basis[slot], row)


@compiled
def project(arena: ArenaState, arm_ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return an array (slots,) with q^T x for every stored direction q of the given arms.

    A slot is a row of the arena that holds one direction of one arm. `rows` holds a row x for each arm, or one for all.
    Entries of other arms are not set. It takes one matrix product if most slots are needed, else one product for each
    slot.
    """
    wanted = 0
    for a in range(arm_ids.size):
        if arm_ids[a] != NONE:
            wanted += arena.used[arm_ids[a]]
    out = np.empty(arena.top, arena.basis.dtype)
    if rows.shape[0] == 1 and 2 * wanted > arena.top:
        if rows.shape[1] > SHORT:
            return dot(arena.basis[: arena.top], rows[0])
        for i in range(arena.top):
            total = out.dtype.type(0.0)
            for j in range(rows.shape[1]):
                total += arena.basis[i, j] * rows[0, j]
            out[i] = total
        return out
    for a in range(arm_ids.size):
        if arm_ids[a] != NONE:
            project_arm(arena, arm_ids[a], rows[a if rows.shape[0] > 1 else 0], out)
    return out


@compiled
def residual_square(arena: ArenaState, arm_id: int, row: np.ndarray) -> float:
    """Return ||x - Q^T Q x||^2 for a row x and the directions Q of one arm, without cancellation."""
    out, slot = row.copy(), arena.first[arm_id]
    for _ in range(arena.used[arm_id]):
        along = dot(arena.basis[slot], out)
        for j in range(row.size):
            out[j] -= along * arena.basis[slot, j]
        slot = arena.link[slot]
    return float(dot(out, out))


@compiled
def score_arms(
    arena: ArenaState,
    arm_ids: np.ndarray,
    squares: np.ndarray,
    fresh: np.ndarray,
    projected: np.ndarray,
    rows: np.ndarray,
    extra: np.ndarray,
    means: np.ndarray,
    widths: np.ndarray,
) -> None:
    """Fill `means` (K,) with predicted rewards and `widths` (K,) with x^T A^-1 x, for one row x for each of K arms.

    A is an arm's design, the rows of Q are its directions, and B is the sum of x z^T over its rows. squares (K,) holds
    ||x||^2, fresh (K,) holds x^T A^-1 x under the prior, and projected (slots,) holds Q x. squares and fresh may have
    one entry for all arms. extra (K, k), the shared features z, becomes z - B^T A^-1 x. rows (K or
    1, dim) may be empty; they are used only if ||x||^2 - ||Q x||^2 has lost digits.
    """
    hold, k, dim = arena.root.shape[1], arena.cross.shape[1], arena.basis.shape[1]
    inside = np.empty(hold)
    eps = np.finfo(arena.basis.dtype).eps
    for a in range(arm_ids.size):
        arm_id = arm_ids[a]
        square = float(squares[a if squares.size > 1 else 0])
        if arm_id == NONE:
            means[a], widths[a] = 0.0, fresh[a if fresh.size > 1 else 0]
            continue
        used, slot, ridge = arena.used[arm_id], arena.first[arm_id], arena.ridge[arm_id]
        mean, covered, total = 0.0, 0.0, 0.0
        for j in range(used):
            inside[j] = 0.0
        for _ in range(used):
            value = float(projected[slot])
            mean += arena.weight[slot] * value
            covered += value * value
            for j in range(used):
                inside[j] += value * arena.root[slot, j]
            slot = arena.link[slot]
        for j in range(used):
            total += inside[j] * inside[j]
        left = 0.0
        if used < dim:
            left = max(square - covered, 0.0)
            if digits_lost(left, square, total, ridge, eps):
                if rows.size > 0:
                    left = residual_square(arena, arm_id, rows[a if rows.shape[0] > 1 else 0])
                elif left < PRODUCT * eps * square:
                    left = 0.0
        if arena.outside[arm_id] != NONE:
            mean += float(projected[arena.outside[arm_id]]) / ridge
        means[a], widths[a] = mean, left / ridge + total
        if k > 0:
            slot = arena.first[arm_id]
            for _ in range(used):
                along = 0.0
                for j in range(used):
                    along += arena.root[slot, j] * inside[j]
                for j in range(k):
                    extra[a, j] -= along * arena.cross[slot, j]
                slot = arena.link[slot]


@compiled
def prior_squares(arena: ArenaState, arm_ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return x^T A^-1 x (n,) for every row x (n, dim), where A is the initial design of an arm.

    If none of the arms has the id NONE, so that all have learned, zeros are returned instead.
    """
    return inverse_quadratic_in(arena.prior.space, rows) if count_untrained(arm_ids) > 0 else np.zeros(rows.shape[0])


@compiled
def evaluate_arms(
    arena: ArenaState, arm_ids: np.ndarray, rows: np.ndarray, extra: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted rewards (K,) and squared widths x^T A^-1 x (K,) of arms, where A is the arm's design.

    `arm_ids` (K,) are the arms' ids, NONE for an arm that has learned nothing. `rows` holds a row x for each arm, or
    one (1, dim) for all. `extra` (K, k) holds the shared features z of a hybrid model, and is (K, 0) in other models.
    It is replaced in place by z - B^T A^-1 x, where B is the sum of x z^T over the arm's rows.
    """
    squares, fresh = squared_norms(rows), prior_squares(arena, arm_ids, rows)
    means, widths = np.empty(arm_ids.size), np.empty(arm_ids.size)
    score_arms(arena, arm_ids, squares, fresh, project(arena, arm_ids, rows), rows, extra, means, widths)
    return means, widths


@compiled
def evaluate_users(arena: ArenaState, arm_ids: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted rewards (n, K) and x^T A^-1 x (n, K), where each of n rows x is the context of every arm.

    A is the arm's design, and `arm_ids` (K,) are the arms' ids.
    """
    means, widths = np.empty((rows.shape[0], arm_ids.size)), np.empty((rows.shape[0], arm_ids.size))
    empty, block = np.empty((0, 0), rows.dtype), max(1, PROJECTED // max(arena.top, 1))
    squares, fresh = squared_norms(rows), prior_squares(arena, arm_ids, rows)
    for start in range(0, rows.shape[0], block):
        users = rows[start : start + block]
        projected = dot(users, arena.basis[: arena.top].T)
        for i in range(users.shape[0]):
            u = start + i
            score_arms(
                arena, arm_ids, squares[u : u + 1], fresh[u : u + 1], projected[i], users[i : i + 1], empty,
                means[u], widths[u],
            )  # fmt: skip
    return means, widths


@compiled
def project_product(arena: ArenaState, arm_ids: np.ndarray, user: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return an array (slots,) with q^T vec(u v_a^T) for every stored direction q of the given arms.

    A slot is a row of the arena that holds one direction of one arm. u is the factor of one user, and right (K, d_a)
    holds the factors v_a of the arms. Entries of other arms are not set.
    """
    out, row = np.empty(arena.top, arena.basis.dtype), np.empty(arena.basis.shape[1], arena.basis.dtype)
    for a in range(arm_ids.size):
        if arm_ids[a] != NONE:
            fill_product(row, user, right[a])
            project_arm(arena, arm_ids[a], row, out)
    return out


@compiled
def contract_arms(arena: ArenaState, arm_ids: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Multiply every stored direction of the given arms, as a matrix (d_u, d_a), by the arm's factor v_a (d_a,).

    The result has shape (slots, d_u). A slot is a row of the arena that holds one direction of one arm. right (K, d_a)
    holds the factors.
    """
    reduced = np.zeros((arena.top, arena.basis.shape[1] // right.shape[1]), arena.basis.dtype)
    for a in range(arm_ids.size):
        if arm_ids[a] != NONE:
            slot = arena.first[arm_ids[a]]
            for _ in range(arena.used[arm_ids[a]]):
                contract_right(arena.basis[slot], right[a], reduced[slot])
                slot = arena.link[slot]
            slot = arena.outside[arm_ids[a]]
            if slot != NONE:
                contract_right(arena.basis[slot], right[a], reduced[slot])
    return reduced


@compiled
def prior_squares_of_products(
    arena: ArenaState, arm_ids: np.ndarray, user: np.ndarray, right: np.ndarray, square: np.ndarray
) -> np.ndarray:
    """Return x^T A^-1 x (K,) for the rows x = vec(u v_a^T) of K arms, where A is the initial design of an arm.

    user (d_u,) is u, right (K, d_a) holds v_a, and square (K,) is ||x||^2.
    """
    fresh, prior = square / arena.prior.space.ridge, arena.prior.space
    if prior.used > 0 and count_untrained(arm_ids) > 0:
        row = np.empty((1, prior.basis.shape[1]), prior.basis.dtype)
        for a in range(arm_ids.size):
            if arm_ids[a] == NONE:
                fill_product(row[0], user, right[a])
                fresh[a] = inverse_quadratic_in(prior, row)[0]
    return fresh


@compiled
def evaluate_factors(
    arena: ArenaState, arm_ids: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted rewards (n, K) and x^T A^-1 x (n, K) for contexts vec(u v_a^T).

    arm_ids (K,) are the arms' indices in the arena, and A is an arm's design. left (n, d_u) holds the users' factors u,
    right (K, d_a) the arms' factors v_a, and d_u d_a = dim. Few users cost one pass over the arena each. For many
    users, every arm's directions are first multiplied by its factor v_a, once for all users.
    """
    means, widths = np.empty((left.shape[0], arm_ids.size)), np.empty((left.shape[0], arm_ids.size))
    empty, block = np.empty((0, 0), left.dtype), max(1, PROJECTED // max(arena.top, 1))
    sizes, norms, few = squared_norms(right), squared_norms(left), left.shape[0] <= 2
    reduced = empty if few else contract_arms(arena, arm_ids, right)
    for start in range(0, left.shape[0], block):
        users = left[start : start + block]
        projected = empty if few else dot(users, reduced.T)
        for i in range(users.shape[0]):
            u, square = start + i, norms[start + i] * sizes
            here = project_product(arena, arm_ids, users[i], right) if few else projected[i]
            fresh = prior_squares_of_products(arena, arm_ids, users[i], right, square)
            score_arms(arena, arm_ids, square, fresh, here, empty, empty, means[u], widths[u])
    return means, widths


@compiled
def exploration_scales(
    arena: ArenaState, rule: Any, limit: int, arm_rule: Any, arm_ids: np.ndarray, theory: np.ndarray
) -> np.ndarray:
    """Return the multiplier (K,) of the exploration width for each of K arms.

    `theory` holds (noise, parameter_bound, row_bound, delta) if the multipliers are to be confidence radii; if it is
    empty, the multiplier is the noise unit of the rows of all arms together. Radii are those of each arm's own model,
    by `rule`, the truncation rule of its design, and `arm_rule`, the rule by which it learns. An arm holds at most
    `limit` directions. An arm with id NONE has the radius of the prior.
    """
    if theory.size == 0:
        nu = unit_of_arms(arm_rule, arena.memory, arena.rows)
        return np.full(arm_ids.size, nu if nu > 0.0 else 1.0)
    out, dim, prior = np.empty(arm_ids.size), arena.basis.shape[1], arena.prior
    constants = Constants(noise=theory[0], parameter_bound=theory[1], row_bound=theory[2], delta=theory[3])
    for a in range(arm_ids.size):
        arm_id = arm_ids[a]
        ridge, log_det, sums, rows = prior.space.ridge, prior.space.log_det, prior.sums, 0
        memory = np.zeros(arena.memory.shape[1])
        if arm_id != NONE:
            ridge, log_det, rows = arena.ridge[arm_id], arena.log_det[arm_id], arena.rows[arm_id]
            sums, memory = sums_of(arena, arm_id), arena.memory[arm_id]
        facts = Facts(directions=min(limit, dim), dim=dim, ridge=ridge, log_det=log_det, sums=sums, rounds=rows)
        out[a] = radius_of_arm(arm_rule, memory, rule, facts, constants, prior.space)
    return out
