"""Settings of a loop: read from a TOML file, checked and compared.

    name = "news"

    [features]
    context = ["hour", "mobile"]        # names of numbers; or how many there are
    arms = 2                            # numbers of every arm (default 0)

    [model]
    recipe = "OFUL"                     # or leave all of the model out: ContextualBandit
    arguments = {exploration = {kind = "InverseGap"}, reg = 1.0}

    [reward]
    wait = 600.0
    range = [0.0, 1.0]

    [outcomes.dollars]                  # and budgets, shares, a baseline: accounting_settings.py
    budget = {amount = 50.0, per = "day"}

Every wrong value gets one sentence; `parse_settings` reports all of them at once.
"""

import contextlib
import importlib
import inspect
import math
import re
import tomllib
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from onepass import __version__, recipes
from onepass.bandit.bandit import Bandit
from onepass.foundation.check import quote
from onepass.foundation.registry import build
from onepass.log.records import LONGEST as LONGEST_NAME
from onepass.log.records import Settings
from onepass.service import accounting_settings, crossed_features
from onepass.service.accounting_settings import LARGEST, NONE, ABTestSettings, Baseline, OutcomeSettings, Shares
from onepass.service.crossed_features import CROSSED, is_crossed
from onepass.service.drawn_deadline import censored_errors
from onepass.service.keys import Keys
from onepass.service.messages import NUL
from onepass.service.validation import suggest_name, type_errors

Aggregation = Literal["earliest", "sum", "mean", "median", "min", "max"]
Mode = Literal["online", "apprentice", "logging", "canary"]
Durability = Literal["commit", "async"]
Sizes = int | list[str]  # how many numbers, or their names

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
WIDEST = 100_000  # features of a row
LONGEST = 30 * 24 * 3600.0  # seconds that rewards are waited for
BODY = 1 << 20  # bytes of a request
RATES = (0.001, 1e6)  # requests a second that a limit may allow
JOINS = 1_000_000_000  # between two whole checkpoints, at most
HALF_LIVES = {"rounds": (1.0, 1e12), "seconds": (0.001, 1e12)}
TOGETHER = {"mode": ("exploring", "promotion"), "reward": ("range", "default")}  # checked one against the other
WRITER = "onepass"  # field of a settings record: the version that wrote it
STAND_IN = "loop"  # the name of a loop whose own does not fit, while the rest of its settings is checked
RECOMMENDED = "ContextualBandit"
OF_KERNELS = ("BKB", "GPUCB")  # whose arms are a table of points, or rows without a context: not for requests
EXPLORING = {"kind": "InverseGap"}  # where the arguments of a recipe do not say how to explore
FIXED = ("name", "features")  # what rows are made of: not to be changed under a log
NO_OUTCOMES = f'outcomes must be left out where model.recipe does not take them, as "{RECOMMENDED}" does'


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of the tables of a settings file."""


class Features(Section, frozen=True, kw_only=True):
    """Features of requests and arms.

    - context: numbers that come with a request (default 0).
    - arms: numbers that come with every arm (default 0).
    - records: true if both are records with any keys instead (default false).

    `context` and `arms` are a list of names, for numbers given by name, or a count, for numbers given in order. A row
    is the context's numbers, then the arm's. `records` is always true if model.recipe is "InteractionBandit";
    "ContextualBandit" takes records, too.
    """

    context: Sizes = 0
    arms: Sizes = 0
    records: bool = False

    @property
    def dim(self) -> int:
        """Width of a row, the numbers of the context and of an arm together."""
        return size(self.context) + size(self.arms)


class WarmStartSettings(Section, frozen=True, kw_only=True):
    """Start of a model from earlier data.

    - file: path of a saved bandit, or of a log in any format of `onepass log`.
    - trust: "earned" (default) weighs the file by how well it predicts; "full" learns it like the log of the loop
      itself.
    """

    file: str
    trust: Literal["earned", "full"] = "earned"


class Model(Section, frozen=True, kw_only=True):
    """Model of a loop.

    - recipe: "ContextualBandit" (default), which needs no tuning; "InteractionBandit", whose features are records; the
      name of another recipe of `onepass.recipes`; or "module:name" of your own recipe.
    - arguments: keyword arguments of the recipe, without dim and seed. Components are tables with their kind, and a
      half-life in seconds is {seconds = 3600.0}.
    - seed: random seed, at least 0 (default 0).
    - warm_start: log or bandit to start from (default: none).
    """

    recipe: str = RECOMMENDED
    arguments: dict[str, Any] = {}
    seed: int = 0
    warm_start: WarmStartSettings | None = None


class Reward(Section, frozen=True, kw_only=True):
    """Rewards of a loop.

    - wait: seconds in which outcomes count, above 0 (default 600.0).
    - default: reward of a decision without an outcome (default 0.0); "none" learns nothing from it.
    - aggregation: how several outcomes become one reward: `earliest` (default), sum, mean, median, min or max.
    - range: the least and the largest reward, up to 1e30 in size, to which sums are limited (default 0 to 1).
    - late: effect of an outcome after the deadline. `count` (default) only counts it; `correct` corrects the model, if
      the model is linear in rewards.
    - censored: True to learn rewards before the deadline, for conversions that take hours or days (default False).
    - delays: distribution of the conversions' delays: pairs of seconds and the share of conversions known by then
      (default none).
    """

    wait: float = 600.0
    default: float | str = 0.0
    aggregation: Aggregation = "earliest"
    range: tuple[float, float] = (0.0, 1.0)
    late: Literal["correct", "count"] = "count"
    censored: bool = False
    delays: list[tuple[float, float]] = []


class Promotion(Section, frozen=True, kw_only=True):
    """Promotion of a candidate.

    - automatic: true if a candidate that has a share takes over once it is better (default false).
    - level: probability that no candidate of the loop is called better although it is not, above 0 and below 1 (default
      0.95).
    """

    automatic: bool = False
    level: float = 0.95


class Operation(Section, frozen=True, kw_only=True):
    """Operation of a loop.

    - checkpoint: seconds between two checkpoints (default 60.0).
    - publish: seconds between two serving copies, at least 0.0 (default 0.05).
    - durability: "commit" (default) means that acknowledged records survive a power cut. With "async" they survive the
      end of the process, but a power cut may take the last of them.
    - whole: number of rewarded decisions learned between two checkpoints whose model is stored in the log, so that the
      log can be verified in pieces, up to 1e9 (default 10000; 0: never). Large models are stored more rarely: the log
      has at least 20 bytes of other records for each byte of models.
    """

    checkpoint: float = 60.0
    publish: float = 0.05
    durability: Durability = "commit"
    whole: int = 10_000


class Limits(Section, frozen=True, kw_only=True):
    """Limits of requests and of the model.

    - body: bytes of a request (default 1 MiB).
    - arms: arms of a decision (default 1000).
    - features: features of a context, or of an arm, that is a record (default 1000).
    - slots: slots of a decision (default 10).
    - id: characters of ids, names and keys (default 256).
    - batch: outcomes of a request (default 1000).
    - rate: requests a second of a key, or of an address if there are no keys, above which requests are refused, from
      0.001 to 1e6 (default 0.0: no limit).
    - known_arms: largest number of arms that a model with a part for every arm knows (default 2000). Beyond it, the
      model forgets arms without an outcome, oldest first, then arms whose last outcome is oldest, but none of `arms`.
    """

    body: int = BODY
    arms: int = 1_000
    features: int = 1_000
    slots: int = 10
    id: int = 256
    batch: int = 1_000
    rate: float = 0.0
    known_arms: int = 2_000


class Personalizer(Section, frozen=True, kw_only=True):
    """Settings that clients of Azure Personalizer write and read back.

    - policy, arguments: name and text of the learning settings (default "": those of onepass).
    - explain: true if a rank explains which features counted (default false).
    """

    policy: str = ""
    arguments: str = ""
    explain: bool = False


class LoopSettings(Section, frozen=True, kw_only=True):
    """Settings of a loop.

    - name: name of the loop; small letters, digits, - and _.
    - arms: arms of a request that names none (default: a request must name arms).
    - mode: "online" (default); "apprentice" shows the first arm and learns; "logging" shows it and learns nothing;
      "canary" is online, but a candidate has a share and waits for its promotion.
    - exploring: probability with which an apprentice shows a uniformly drawn arm, from 0.0 (default) to 1.
    - share: share of the decisions for a candidate, above 0 and below 1 (default 0.1).
    - features, model, reward, promotion, operation, limits, personalizer: tables of settings, each described in a class
      of that name.
    - outcomes: a table of settings (`OutcomeSettings`) for each number beside the reward, by name (default: none).
    - shares: table of the smallest and largest shares of the decisions that arms may get (default: any).
    - baseline: table that describes the rule that the loop must not fall far below (default: none).
    - ab_test: table of settings of a report of which arm is better (default: none).
    """

    name: str
    features: Features = Features()
    arms: list[str] = []
    mode: Mode = "online"
    exploring: float = 0.0
    share: float = 0.1
    model: Model = Model()
    reward: Reward = Reward()
    outcomes: dict[str, OutcomeSettings] = {}
    shares: Shares | None = None
    baseline: Baseline | None = None
    ab_test: ABTestSettings | None = None
    promotion: Promotion = Promotion()
    operation: Operation = Operation()
    limits: Limits = Limits()
    personalizer: Personalizer = Personalizer()

    @property
    def default(self) -> float | None:
        """Reward assumed for a decision without an outcome, or None to learn nothing from it."""
        return None if isinstance(self.reward.default, str) else self.reward.default

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data for JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def takes_records(settings: LoopSettings) -> bool:
    """Return True if requests and arms are records, not rows of numbers."""
    return is_crossed(settings.model.recipe) or (settings.model.recipe == RECOMMENDED and settings.features.records)


def size(numbers: Sizes) -> int:
    """Return how many numbers a setting defines: the length of a list of names, or the count itself."""
    return numbers if isinstance(numbers, int) else len(numbers)


def parse_settings(found: Any) -> LoopSettings:
    """Return the settings in `found`, plain data; raise ValueError with a sentence for every wrong value."""
    try:
        settings = msgspec.convert(found, LoopSettings)
    except msgspec.ValidationError:
        raise ValueError("\n".join(collect_errors(found))) from None
    wrong = [*settings_errors(settings)]
    if wrong:
        raise ValueError("\n".join(wrong))
    return settings


def parse_logged_settings(record: Settings) -> LoopSettings:
    """Make settings from a record of the log.

    Raises ValueError in one sentence that names both versions if this version of onepass does not take them.
    """
    try:
        return parse_settings(record.settings["loop"])
    except ValueError as error:
        writer = record.settings.get(WRITER, "0.2.0 or earlier")
        raise ValueError(
            f"the settings of loop {quote(record.loop)} were written by onepass {writer}; onepass {__version__} does "
            f"not take them: {'; '.join(str(error).splitlines())}; serve this log with onepass {writer}, or give the "
            "loop another name"
        ) from None


def collect_errors(found: Any) -> Iterator[str]:
    """Yield a sentence for every value in `found` of a wrong type or out of range.

    `found` is a loop's settings as plain data, before they are checked; a dictionary if they are right.
    Values whose check depends on a value of a wrong type are not checked.
    """
    sentences, fitting = type_errors(found, LoopSettings)
    for one in sentences:
        yield f"settings do not fit: {one}"
    if not isinstance(found, dict):
        return
    if "mode" in found and "mode" not in fitting:
        for name in TOGETHER["mode"]:
            fitting.pop(name, None)
    if any(name in found.get("reward", ()) and name not in fitting.get("reward", ()) for name in TOGETHER["reward"]):
        for name in TOGETHER["reward"]:
            fitting["reward"].pop(name, None)
    unknown = [name for name in ("features", "model") if any(f"`$.{name}" in one for one in sentences)]
    settings = msgspec.convert({"name": STAND_IN, **fitting}, LoopSettings)
    yield from plain_errors(settings)
    yield from accounting_settings.errors(settings, takes_records(settings))
    if "features" not in unknown:
        sizes = [*feature_errors(settings)]
        yield from sizes
        if not sizes and "model" not in unknown:
            yield from model_errors(settings)


def settings_errors(settings: LoopSettings) -> Iterator[str]:
    """Yield a sentence for every wrong value of a loop's settings."""
    yield from plain_errors(settings)
    yield from accounting_settings.errors(settings, takes_records(settings))
    sizes = [*feature_errors(settings)]
    yield from sizes
    if not sizes:
        yield from model_errors(settings)


def feature_errors(settings: LoopSettings) -> Iterator[str]:
    """Yield a sentence for every wrong value of the features."""
    features, sizes = settings.features, False
    for name in ("context", "arms"):
        numbers = getattr(features, name)
        if not 0 <= size(numbers) <= WIDEST:
            sizes = True
            yield f"features.{name} must be from 0 to {WIDEST} numbers, got {size(numbers)}"
        if isinstance(numbers, list) and len(set(numbers)) != len(numbers):
            yield f"features.{name} must name every number once, got {quote(numbers)}"
    if is_crossed(settings.model.recipe):
        if features.dim > 0:
            sizes = True
            yield 'features must be left out where model.recipe = "InteractionBandit": requests and arms are records'
    elif features.records:
        if features.dim > 0 or not takes_records(settings):
            sizes = True
            yield (
                "features.records must be false beside numbers, and where model.recipe is neither "
                f'"{RECOMMENDED}" nor "{CROSSED}"'
            )
    elif features.dim == 0 and not sizes:
        sizes = True
        yield "features must have a number at least: context = 1 where there is none to give, and send [1.0]"


def plain_errors(settings: LoopSettings) -> Iterator[str]:
    """Yield a sentence for every wrong value outside the features and the model."""
    reward, operation = settings.reward, settings.operation
    if not NAME.fullmatch(settings.name):
        yield f"name must be small letters, digits, - and _, 64 at most, got {quote(settings.name)}"
    if len(set(settings.arms)) != len(settings.arms) or "" in settings.arms:
        yield f"arms must name every arm once, got {quote(settings.arms)}"
    for arm in settings.arms:
        if len(arm) > settings.limits.id or NUL in arm:
            yield f"arms must have names of at most {settings.limits.id} characters, none of them NUL, got {quote(arm)}"
    if len(settings.arms) > settings.limits.arms:
        yield f"arms must be at most limits.arms = {settings.limits.arms}, got {len(settings.arms)}"
    if not 0.0 <= settings.exploring <= 1.0:
        yield f"exploring must be from 0 to 1, got {settings.exploring}"
    if settings.exploring > 0.0 and settings.mode in ("online", "canary"):
        yield (
            f'exploring must be 0 where mode = "{settings.mode}": the model explores itself '
            "(model.arguments.exploration)"
        )
    if not 0.0 < settings.share < 1.0:
        yield f"share must be above 0 and below 1, got {settings.share}"
    if settings.promotion.automatic and settings.mode != "canary":
        yield 'promotion.automatic must be false but where mode = "canary": a candidate is compared by its share'
    if not 0.0 < settings.promotion.level < 1.0:
        yield f"promotion.level must be above 0 and below 1, got {settings.promotion.level}"
    if not 0.0 < reward.wait <= LONGEST:
        yield f"reward.wait must be above 0 and at most {LONGEST:.0f} seconds, got {reward.wait}"
    least, largest = reward.range
    if not -LARGEST <= least < largest <= LARGEST:
        yield (
            f"reward.range must be the least, then the largest reward, within {LARGEST:.0e}, "
            f"got {quote(list(reward.range))}"
        )
    elif isinstance(reward.default, float) and not least <= reward.default <= largest:
        yield f"reward.default must be in reward.range, from {least} to {largest}, got {reward.default}"
    if isinstance(reward.default, str) and reward.default != NONE:
        yield f'reward.default must be a number, or "{NONE}", got {quote(reward.default)}'
    yield from censored_errors(settings)
    if not 0.0 < operation.checkpoint < math.inf:
        yield f"operation.checkpoint must be a finite number of seconds above 0, got {operation.checkpoint}"
    if not 0 <= operation.whole <= JOINS:
        yield f"operation.whole must be from 1 to {JOINS:,} joins, or 0 for never, got {operation.whole}"
    if not 0.0 <= operation.publish < math.inf:
        yield f"operation.publish must be a finite number of seconds, at least 0, got {operation.publish}"
    for name in Limits.__struct_fields__:
        if name != "rate" and getattr(settings.limits, name) < 1:
            yield f"limits.{name} must be at least 1, got {getattr(settings.limits, name)}"
    if settings.limits.id > LONGEST_NAME:
        yield f"limits.id must be at most {LONGEST_NAME}, as the log has it, got {settings.limits.id}"
    if settings.limits.rate != 0.0 and not RATES[0] <= settings.limits.rate <= RATES[1]:
        yield (
            f"limits.rate must be from {RATES[0]:g} to {RATES[1]:g} requests a second, or 0 for any number, "
            f"got {settings.limits.rate}"
        )


def model_errors(settings: LoopSettings) -> Iterator[str]:
    """Yield a sentence if the model of the settings cannot be made."""
    model = settings.model
    if is_crossed(model.recipe):
        yield from crossed_features.argument_errors(model.arguments, model.seed)
        return
    try:
        recipe = find_recipe(model.recipe)
    except ValueError as error:
        yield f"{error}"
        return
    if model.arguments.keys() & {"dim", "seed", "outcomes"}:
        yield (
            "model.arguments must leave out dim, which features say, seed, which is model.seed, and outcomes, which is "
            "a table of its own"
        )
        return
    known = inspect.signature(recipe).parameters.keys()
    unknown = model.arguments.keys() - known
    if unknown:
        for name in sorted(unknown):
            yield f"model.arguments has {quote(name)}, which {model.recipe} does not know{suggest_name(name, known)}"
        return
    sentence = half_life_error(model.arguments.get("half_life"))
    if sentence:
        yield f"model.arguments: half_life must be {sentence}"
        return
    try:
        bandit = make_bandit(settings)
    except (ValueError, TypeError) as error:
        yield f"model.arguments: {error}"
        return
    if not isinstance(bandit, Bandit):
        yield f"model.recipe must return a bandit, but {quote(model.recipe)} returns {type(bandit).__name__}"
        return
    if model.warm_start is not None and (bandit.outcomes or bandit.needs_time):
        yield "model.warm_start must be left out in a loop with outcomes or a half-life in seconds"
    if settings.features.arms in (0, []) and not bandit.model.has_named_arms:
        yield (
            'features.arms must have a number at least where one model is shared by all arms: or set model = "'
            'disjoint" in model.arguments'
        )


def half_life_error(value: Any) -> str:
    """Return a text on the valid values of a half-life and the given one, or "" if it is valid."""
    unit, number = "rounds", value
    if isinstance(value, dict):
        unit, number = "seconds", value.get("seconds")
        if value.keys() != {"seconds"}:
            return f"a table of seconds alone, {{seconds = 86400.0}}, got {quote(value)}"
    if number is None and value is None:
        return ""
    least, largest = HALF_LIVES[unit]
    fits = isinstance(number, int | float) and not isinstance(number, bool) and least <= number <= largest
    way = "or {seconds = 86400.0} for one in seconds, got" if unit == "rounds" else "got"
    return "" if fits else f"from {least:g} to {largest:g} {unit}, {way} {quote(number)}"


def make_bandit(settings: LoopSettings) -> Any:
    """Make the bandit of a loop, untrained; raise ValueError for arguments that its recipe does not take."""
    model = settings.model
    if is_crossed(model.recipe):
        return crossed_features.make_bandit(model.arguments, model.seed, [*settings.outcomes])
    given = {name: parse_argument(name, value) for name, value in model.arguments.items()}
    recipe = find_recipe(model.recipe)
    if settings.outcomes:
        if "outcomes" not in inspect.signature(recipe).parameters:
            raise ValueError(NO_OUTCOMES)
        given["outcomes"] = [*settings.outcomes]
    if takes_records(settings):
        return recipe(seed=model.seed, **given)
    if (
        model.recipe != RECOMMENDED
        and "exploration" not in given
        and "exploration" in inspect.signature(recipe).parameters
    ):
        with contextlib.suppress(ValueError):  # those of heavy tails take a number alone
            return recipe(dim=settings.features.dim, seed=model.seed, exploration=build(EXPLORING), **given)
    return recipe(dim=settings.features.dim, seed=model.seed, **given)


def find_recipe(name: str) -> Any:
    """Return a recipe of `onepass.recipes`, or of another module if the name is "module:name".

    Raises ValueError for an unknown name, for a module that cannot be imported, and for what is no function or class
    of known arguments.
    """
    module, colon, own = name.partition(":")
    if colon:
        try:
            recipe = getattr(importlib.import_module(module), own)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"model.recipe must name a recipe of a module, got {quote(name)}: {error}") from None
        try:
            inspect.signature(recipe)
        except (ValueError, TypeError):
            raise ValueError(
                f"model.recipe must name a function or class whose arguments Python can list, got {quote(name)}"
            ) from None
        return recipe
    names = [one for one in recipes.__all__ if one not in OF_KERNELS]
    if name not in names:
        raise ValueError(
            f"model.recipe must be one of {', '.join(names)}, got {quote(name)}{suggest_name(name, names)}"
        )
    return getattr(recipes, name)


def parse_argument(name: str, value: Any) -> Any:
    """Return the value of the argument `name` of a bandit, made from the plain data `value` in a settings file.

    A half-life in seconds becomes a timedelta, and a table with a kind becomes a component.
    """
    if name == "half_life" and isinstance(value, dict):
        return timedelta(**value)
    return build(value)


def immutable_settings(settings: LoopSettings) -> dict[str, Any]:
    """Return the settings that must not change while a log is in use, by name; the names of outcomes are among them."""
    fixed = {name: msgspec.to_builtins(getattr(settings, name)) for name in FIXED}
    return {**fixed, "outcomes": [*settings.outcomes]}


def diff_settings(old: LoopSettings, new: LoopSettings) -> list[str]:
    """Return the names of the settings that differ between `old` and `new`."""
    return [name for name in LoopSettings.__struct_fields__ if getattr(old, name) != getattr(new, name)]


def read_file(path: str | Path) -> tuple[LoopSettings, list[dict[str, Any]]]:
    """Read the settings and keys of a file; raise ValueError with the file's name and all errors."""
    settings, wrong = None, list[str]()
    try:
        found = tomllib.loads(Path(path).read_text())
        keys = found.pop("keys", [])
        try:
            accounting_settings.read_rule(found, Path(path).parent)
            settings = parse_settings(found)
        except ValueError as error:
            wrong += str(error).splitlines()
        Keys(keys)
    except (ValueError, OSError) as error:
        wrong += str(error).splitlines()
    if wrong or settings is None:
        raise ValueError("\n".join(f"{path}: {line}" for line in wrong))
    return settings, keys


def read_files(paths: Iterable[str | Path]) -> list[tuple[LoopSettings, list[dict[str, Any]]]]:
    """Read the settings and keys of files; raise ValueError with all errors, also for a name that two files use."""
    found, wrong, names = [], list[str](), dict[str, str | Path]()
    for path in paths:
        try:
            settings, keys = read_file(path)
        except ValueError as error:
            wrong += str(error).splitlines()
            continue
        found.append((settings, keys))
        other = names.setdefault(settings.name, path)
        if len(names) < len(found):
            wrong.append(f"{path}: every loop must have a name of its own, but {quote(settings.name)} is {other}'s")
            found.pop()
    if wrong:
        raise ValueError("\n".join(wrong))
    return found


AGGREGATIONS = get_args(Aggregation)
