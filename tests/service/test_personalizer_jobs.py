"""Jobs in the background: kept in files, once for an id, told when they fail or were cut off."""

import threading

import pytest

from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.jobs import Jobs
from patience import PATIENCE, until


def jobs(folder):
    return Jobs(folder / "jobs", "EvaluationNotFound", "EvaluationAlreadyExists")


def finished(found, id):
    return until(lambda: (one := found.get(id))["status"] != "Running" and one)


def failing():
    raise ValueError("there is no log")


def test_what_came_of_a_job_is_there_after_a_restart(tmp_path):
    found = jobs(tmp_path)
    found.start({"id": "a/b", "creationTime": "2"}, lambda: {"value": 3})
    found.start({"id": "ü" * 256, "creationTime": "1"}, failing)
    assert finished(found, "a/b") == {"id": "a/b", "creationTime": "2", "status": "Succeeded", "value": 3}
    assert finished(found, "ü" * 256)["description"] == "there is no log"
    again = jobs(tmp_path)
    assert [one["status"] for one in again.list_all()] == ["Failed", "Succeeded"]
    with pytest.raises(Problem) as error:
        again.start({"id": "a/b"}, failing)
    assert (error.value.status, error.value.code) == (400, "EvaluationAlreadyExists")
    again.delete("a/b")
    for ask in (again.get, again.delete):
        with pytest.raises(Problem) as error:
            ask("a/b")
        assert (error.value.status, error.value.code) == (404, "EvaluationNotFound")


def test_a_job_that_was_cut_off_is_canceled_and_one_that_was_deleted_leaves_nothing(tmp_path):
    found, held, begun = jobs(tmp_path), threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert held.wait(PATIENCE)
        return {"value": "old"}

    found.start({"id": "x"}, slow)
    assert begun.wait(PATIENCE)
    assert found.get("x")["status"] == "Running"
    assert jobs(tmp_path).get("x")["status"] == "Canceled"
    found.delete("x")
    found.start({"id": "x"}, lambda: {"value": "new"})
    found.start({"id": "y"}, dict)
    held.set()
    finished(found, "y")
    assert finished(found, "x")["value"] == "new"
