from typing import Any, Literal, overload

from onepass.bandit.arms import ArmBandit
from onepass.bandit.shared import SharedBandit
from onepass.design.design import Design
from onepass.recipes.compose import Dim, Explore

__all__ = [
    "CBRAP",
    "CBSCFD",
    "CRMM",
    "CRTM",
    "GLBOMD",
    "GLOC",
    "MENU",
    "OFUL",
    "SOFUL",
    "TOFU",
    "DBSLinUCB",
    "HeavyOFUL",
    "HvtUCB",
    "ItemModels",
    "LinTS",
    "LinUCB",
    "PSILinUCB",
    "WeightUCB",
]

@overload
def OFUL(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def OFUL(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def OFUL(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def LinUCB(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def LinUCB(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def LinUCB(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def LinTS(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def LinTS(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def LinTS(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def SOFUL(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    thompson: bool = False,
    estimator: str = "ridge",
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def SOFUL(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    thompson: bool = False,
    estimator: str = "ridge",
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def SOFUL(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    thompson: bool = False,
    estimator: str = "ridge",
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def CBSCFD(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    compensation: float = 1.0,
    estimator: str = "ridge",
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def CBSCFD(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    compensation: float = 1.0,
    estimator: str = "ridge",
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def CBSCFD(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    compensation: float = 1.0,
    estimator: str = "ridge",
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def CBRAP(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def CBRAP(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def CBRAP(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def DBSLinUCB(
    *,
    dim: Dim,
    size: int,
    error: float,
    base: str = "fd",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def DBSLinUCB(
    *,
    dim: Dim,
    size: int,
    error: float,
    base: str = "fd",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def DBSLinUCB(
    *,
    dim: Dim,
    size: int,
    error: float,
    base: str = "fd",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def PSILinUCB(
    *,
    dim: Dim,
    rank: int,
    compensate: bool = False,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def PSILinUCB(
    *,
    dim: Dim,
    rank: int,
    compensate: bool = False,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def PSILinUCB(
    *,
    dim: Dim,
    rank: int,
    compensate: bool = False,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def HvtUCB(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 1.5,
    clip: float | None = None,
    floor: float | None = None,
    step: float | None = None,
    parameter_bound: float | None = None,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def HvtUCB(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 1.5,
    clip: float | None = None,
    floor: float | None = None,
    step: float | None = None,
    parameter_bound: float | None = None,
    parameters: Literal["disjoint"],
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def HvtUCB(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 1.5,
    clip: float | None = None,
    floor: float | None = None,
    step: float | None = None,
    parameter_bound: float | None = None,
    parameters: str,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def HeavyOFUL(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.5,
    clip: float | None = None,
    floor: float | None = None,
    parameter_bound: float | None = None,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def HeavyOFUL(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.5,
    clip: float | None = None,
    floor: float | None = None,
    parameter_bound: float | None = None,
    parameters: Literal["disjoint"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def HeavyOFUL(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.5,
    clip: float | None = None,
    floor: float | None = None,
    parameter_bound: float | None = None,
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def CRTM(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    clip: float = 1.0,
    parameter_bound: float | None = None,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def CRTM(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    clip: float = 1.0,
    parameter_bound: float | None = None,
    parameters: Literal["disjoint"],
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def CRTM(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    clip: float = 1.0,
    parameter_bound: float | None = None,
    parameters: str,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
def CRMM(
    *,
    dim: Dim,
    horizon: int | None = None,
    repeats: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    parameter_bound: float | None = None,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit: ...
def MENU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    repeats: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 1.0,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def TOFU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.0,
    clip: float = 1.0,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def TOFU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.0,
    clip: float = 1.0,
    parameters: Literal["disjoint"],
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def TOFU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.0,
    clip: float = 1.0,
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def WeightUCB(
    *,
    dim: Dim,
    half_life: Any = 1000.0,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit: ...
@overload
def WeightUCB(
    *,
    dim: Dim,
    half_life: Any = 1000.0,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: Literal["disjoint", "hybrid"],
    seed: int = 0,
    dtype: str = "float64",
) -> ArmBandit: ...
@overload
def WeightUCB(
    *,
    dim: Dim,
    half_life: Any = 1000.0,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str,
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit: ...
@overload
def GLBOMD(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 0.4,
    step: float | None = None,
    parameter_bound: float | None = None,
    implicit: bool | None = None,
    clip: float | None = None,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def GLBOMD(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 0.4,
    step: float | None = None,
    parameter_bound: float | None = None,
    implicit: bool | None = None,
    clip: float | None = None,
    parameters: Literal["disjoint"],
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def GLBOMD(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 0.4,
    step: float | None = None,
    parameter_bound: float | None = None,
    implicit: bool | None = None,
    clip: float | None = None,
    parameters: str,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
@overload
def GLOC(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 0.4,
    parameter_bound: float = 3.0,
    parameters: Literal["shared"] = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit: ...
@overload
def GLOC(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 0.4,
    parameter_bound: float = 3.0,
    parameters: Literal["disjoint"],
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> ArmBandit: ...
@overload
def GLOC(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 0.4,
    parameter_bound: float = 3.0,
    parameters: str,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> SharedBandit | ArmBandit: ...
def ItemModels(
    *,
    dim: int,
    taste: float = 2.0,
    reg: float = 1000.0,
    exploration: Explore = 0.0,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = 15000.0,
) -> ArmBandit: ...
