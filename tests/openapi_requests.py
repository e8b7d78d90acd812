"""Requests that schemathesis makes of an operation, up to a number of them or a time."""

import time
from collections import Counter
from itertools import count

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from counts import LONG

HOST = {"host": "127.0.0.1"}
JSON = "application/json"
PATIENCE = 300.0  # seconds for an answer
FIT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
MODES = {FIT: "fit", WRONG: "do not fit"}
BATCH = 50  # requests between two looks at the clock
SECONDS = 5.0  # limit for one operation under `make test-long`: ten minutes for all of them


def cases(document, chosen):
    """Return operations of a document as (path, method, mode). `chosen(path)` selects paths."""
    return [
        (path, method, mode)
        for path, methods in document["paths"].items()
        if chosen(path)
        for method, operation in methods.items()
        for mode in MODES
        if mode is FIT
        or JSON in operation.get("requestBody", {"content": ()})["content"]
        or any(one["in"] == "query" and one["name"] != "api-version" for one in operation.get("parameters", ()))
    ]  # what takes names in the path alone, or bytes, is never wrong


def count_answers(operation, mode, examples, put_right):
    """Send requests to an operation, and count the answers by status.

    `put_right(case, whole)` adds to a case what the document does not specify. It completes the case if `whole`.
    """
    counts, end = Counter(), time.monotonic() + SECONDS

    def ask(case, whole):
        put_right(case, whole)
        answer = case.call(headers=HOST, timeout=PATIENCE)
        counts[answer.status_code] += 1
        case.validate_response(answer, excluded_checks=[positive_data_acceptance])

    for number in count():
        if counts.total() >= examples or (LONG and number and time.monotonic() > end):
            return counts
        before = counts.total()
        some = settings(max_examples=min(BATCH, examples - before), deadline=None, database=None,
                        suppress_health_check=list(HealthCheck))  # fmt: skip
        asking = given(case=operation.as_strategy(generation_mode=mode), whole=st.booleans())(ask)
        some(seed(number)(asking))()
        if counts.total() - before < min(BATCH, examples - before):  # there are no others
            return counts
