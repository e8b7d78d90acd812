"""Feature maps x -> z, which are applied before a design or a learner.

d is the width of x, D the width of z, and m the number of landmarks. The column "certificates" says if a design's error
bound still holds after the map, and "learns" if the map learns from the rows.

| map                  | z                                | a row         | certificates | learns |
| -------------------- | -------------------------------- | ------------- | ------------ | ------ |
| Identity, Intercept  | x, 1                             | nothing, O(1) | kept         | no     |
| Standardize          | (x - mean) / deviation           | O(d)          | lost         | yes    |
| GaussianProjection   | R x, random                      | O(d D)        | lost         | no     |
| Fourier              | cos and sin of W x, random       | O(d D)        | lost         | no     |
| Nystrom              | L^-1 k_S(x)                      | O(m (d + m))  | kept         | no     |
| OuterProduct         | vec(u v^T) of x = (u, v)         | O(D), or none | kept         | no     |
| Chain, Concatenate   | b(a(x)), (a(x), b(x))            | both          | if both keep | if one |
| landmarks, sketched  | Z^T k(x), for learners           | O(m (d + D))  |              |        |

Their contract is in contract.py, the base class in feature_map.py, and kernels are in kernels.py.
"""
