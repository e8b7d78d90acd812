"""Whatever is lost, a shard or the process, comes back: the model is the uninterrupted one, no row lost or twice."""

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import repetitions as often
from onepass.cluster import ShardedBandit, ShardLost
from onepass.cluster.journal import Journal
from sharded_driver import DIM, assert_same, batch, recipe

DRIVER = Path(__file__).parents[1] / "sharded_driver.py"


def make_learned_bandit(folder, rounds: int, shards: int = 2, every: int = 1_000_000) -> ShardedBandit:
    bandit = ShardedBandit(recipe(), shards, folder=folder, checkpoint_every=every)
    for seq in range(1, rounds + 1):
        bandit.learn(*batch(seq))
    return bandit


def check_reopened(folder, rounds: int) -> None:
    with ShardedBandit.open(folder) as bandit:
        assert_same(bandit, rounds)


def test_a_folder_opened_is_the_bandit_after_its_last_change(tmp_path):
    for rounds, every in ((5, 1_000_000), (12, 10)):
        folder = tmp_path / str(rounds)
        make_learned_bandit(folder, rounds, every=every).close()
        check_reopened(folder, rounds)
        assert sum(path.name.startswith("cut-") for path in folder.iterdir()) == 1


def test_every_kind_of_change_is_logged(tmp_path):
    one, many = recipe(), ShardedBandit(recipe(), 2, folder=tmp_path)
    x = np.arange(1.0, DIM + 1.0)
    for bandit in (one, many):
        bandit.learn(x, 1.0, "single")
        bandit.learn([x, -x], np.array([0.0, 1.0]), np.array(["a", "b"]))
        bandit.add_arm(("a", "tuple"))
        bandit.remove_arm("a")
    first, two = one.decide(x, id="first"), one.decide([[x], [-x]], id=["second", "third"])
    lists = one.decide(x, k=2, id="list")
    for bandit in (one, many):
        bandit.learn(first, 0.5)
        bandit.learn(two, [0.25, None])
        bandit.learn([lists], [[None, 1.0]])
        bandit.learn(first, 0.75, allow_repeat=True)
    many.close()
    again = ShardedBandit.open(tmp_path)
    assert (again.seq, again.n_learned, again.arms) == (8, one.n_learned, one.arms)
    np.testing.assert_array_equal(again.score(x), one.score(x))
    with pytest.raises(ValueError, match="has had its reward"):
        again.learn(first, 0.5)
    again.close()


def test_a_change_that_was_not_written_to_its_end_is_no_change(tmp_path):
    make_learned_bandit(tmp_path / "a", 3).close()
    log = tmp_path / "a" / "log-1"
    data = log.read_bytes()
    bandit = make_learned_bandit(tmp_path / "two", 2)
    bandit.close()
    whole = len((tmp_path / "two" / "log-1").read_bytes())
    assert data[:whole] == (tmp_path / "two" / "log-1").read_bytes()
    for cut in (*range(whole, len(data), (len(data) - whole) // 7), len(data) - 1):
        folder = tmp_path / f"cut {cut}"
        shutil.copytree(tmp_path / "a", folder)
        (folder / "log-1").write_bytes(data[:cut])
        with ShardedBandit.open(folder) as opened:
            assert_same(opened, 2)
            opened.learn(*batch(3), seq=3)
        check_reopened(folder, 3)


@pytest.mark.parametrize("byte", [0, 9, 16, 30, -1], ids=["mark", "length", "crc", "data", "end of data"])
def test_a_flipped_bit_before_whole_changes_is_refused(tmp_path, byte):
    make_learned_bandit(tmp_path, 1).close()
    log = tmp_path / "log-1"
    place = byte % log.stat().st_size
    with ShardedBandit.open(tmp_path) as bandit:
        for seq in (2, 3):
            bandit.learn(*batch(seq))
    data = bytearray(log.read_bytes())
    data[place] ^= 1
    log.write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged at byte 0.*whole frames follow"):
        ShardedBandit.open(tmp_path)
    data[place] ^= 1
    log.write_bytes(data)
    check_reopened(tmp_path, 3)


def test_a_full_disk_raises_and_when_it_has_room_again_nothing_is_lost_or_doubled(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python may leave half a file of it, which others would read
    bandit = make_learned_bandit(tmp_path, 2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "log-1").stat().st_size + 10, limits[1]))
    try:
        for _ in range(2):
            with pytest.raises(OSError, match="again with the same seq"):
                bandit.learn(*batch(3), seq=3)
        with pytest.raises(OSError, match="again with the same seq"):
            bandit.learn(*batch(4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    bandit.learn(*batch(3), seq=3)
    bandit.learn(*batch(4))
    assert_same(bandit, 4)
    bandit.close()
    check_reopened(tmp_path, 4)


def test_an_imported_arm_that_could_not_be_written_is_written_before_the_next_change(tmp_path, monkeypatch):
    one, x = recipe(), np.arange(1.0, DIM + 1.0)
    one.learn(x, 1.0, "moved")
    bandit = ShardedBandit(recipe(), folder=tmp_path)
    bandit.add_arm("moved")
    with monkeypatch.context() as full:
        full.setattr(Journal, "write_checkpoint", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                bandit.import_arm("moved", one.model.export_arm("moved"), seq=2)
    bandit.learn(x, 1.0, "other")
    bandit.close()
    with ShardedBandit.open(tmp_path) as again:
        assert again.seq == 3
        assert again.model.rows_of("moved") == 1


def test_a_folder_is_open_in_one_place(tmp_path):
    bandit = make_learned_bandit(tmp_path, 2)
    for open_again in (lambda: ShardedBandit.open(tmp_path), lambda: ShardedBandit(recipe(), folder=tmp_path)):
        with pytest.raises(ValueError, match="open in one process"):
            open_again()
    code = f"from onepass.cluster import ShardedBandit; ShardedBandit.open({str(tmp_path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert other.returncode == 1
    assert "open in one process" in other.stderr
    bandit.close()
    check_reopened(tmp_path, 2)


def test_a_change_asked_for_again_is_made_once():
    bandit = ShardedBandit(recipe())
    for seq in (1, 1, 2, 1, 3, 3):
        bandit.learn(*batch(seq), seq=seq)
    assert_same(bandit, 3)
    with pytest.raises(ValueError, match="seq must be 4"):
        bandit.learn(*batch(5), seq=5)


@settings(max_examples=often(8, 300), deadline=None)
@given(st.lists(st.sampled_from(["lose 0", "lose 1", "lose all", "cut", "add", "drop", "reopen"]), max_size=8))
def test_lost_shards_come_back(tmp_path_factory, acts):
    folder = tmp_path_factory.mktemp("shards")
    bandit = ShardedBandit(recipe(), 2, folder=folder)
    for seq, act in enumerate(["", *acts], start=1):
        bandit.learn(*batch(seq))
        members = list(bandit.supervisor.members.values())
        if act.startswith("lose"):
            for member in members if act == "lose all" else [members[int(act[-1]) % len(members)]]:
                member.shard.clear()
        elif act == "cut":
            bandit.save()
        elif act == "add":
            bandit.add_shard()
        elif act == "drop" and len(members) > 1:
            bandit.remove_shard(bandit.shards[0])
        elif act == "reopen":
            bandit.close()
            bandit = ShardedBandit.open(folder)
    assert_same(bandit, len(acts) + 1)
    bandit.close()
    shutil.rmtree(folder)


def test_without_a_folder_a_lost_shard_raises():
    bandit = ShardedBandit(recipe())
    bandit.learn(*batch(1))
    for member in bandit.supervisor.members.values():
        member.shard.clear()
    with pytest.raises(ShardLost, match="folder"):
        bandit.score(np.ones(DIM))


def test_what_cannot_be_logged_is_not_learned(tmp_path):
    with ShardedBandit(recipe(), folder=tmp_path) as bandit:
        for wrong in (lambda: bandit.learn(np.ones(DIM), 1.0, frozenset("a")), lambda: bandit.add_arm(frozenset("a"))):
            with pytest.raises(ValueError, match="logged"):
                wrong()
        assert bandit.seq == bandit.n_learned == 0
        assert bandit.arms == ()


def test_a_folder_is_not_written_over_and_none_is_made_up(tmp_path):
    make_learned_bandit(tmp_path / "a", 1).close()
    with pytest.raises(ValueError, match="open goes on"):
        ShardedBandit(recipe(), folder=tmp_path / "a")
    with pytest.raises(ValueError, match="must hold a bandit"):
        ShardedBandit.open(tmp_path / "b")
    (tmp_path / "a" / "current").write_text("{}")
    with pytest.raises(ValueError, match="damaged"):
        ShardedBandit.open(tmp_path / "a")


def run_with_kills(folder: Path, rounds: int, kills: int, seed: int, *options: str) -> None:
    """Let a driver learn `rounds` changes, killed `kills` times: after so many more changes, or in the midst of one."""
    rng, command = np.random.default_rng(seed), [sys.executable, str(DRIVER), str(folder), str(rounds), *options]
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(int(rng.integers(1, 30))):
            process.stdout.readline()
        process.kill()
        process.wait()
        process.stdout.close()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def test_a_driver_that_is_killed_goes_on_where_it_was(tmp_path):
    kills = often(1, 34)
    run_with_kills(tmp_path / "a", 15 * (kills + 1), kills, 0, "2")
    check_reopened(tmp_path / "a", 15 * (kills + 1))
