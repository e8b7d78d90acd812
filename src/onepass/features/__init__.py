"""Feature maps x -> z, which come before a design or a learner. d: width of x, D: of z, m: landmarks.

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

The contract they keep: contract.py; the public face: feature_map.py; kernels: kernels.py.
"""
