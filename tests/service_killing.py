"""Kills under load at any moment: what a process does that forks services, asks them, and kills them.

Each life is a whole service on loopback, with its sockets, forked so that it need not import again. Clients ask until
it is killed; in the next life they first ask again what had no answer, and some of what had. Where an operator changes
things meanwhile (models, shares, promotions, ways back, subjects that are forgotten), outcomes come late as well, and
after every kill the whole log is verified.
"""

import json
import subprocess
import sys

from service_process import write_settings

LONGEST = 0.6  # seconds that a service lives after its first answer
STEERED = 1.2  # the same where an operator steers it
RULES = """mode = "canary"
share = 0.4
"""

KILLING = r"""
import http.client, json, os, re, signal, sys, threading, time
from pathlib import Path
import numpy as np
import onepass as op
from onepass.log import Activation, wal_checkpointer
from onepass.log.model_lineage import read_lineage
from onepass.log.replay import Fold
from onepass.log.verification import FORGOTTEN, verify
from onepass.log.open_store import open_store
from onepass.service import candidate, checkpoints, server
from onepass.service.responses import decision_answer
from onepass.service.loop import compile_paths
from onepass.service.settings import make_bandit, read_file

data, path, kills, longest = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
log, seed, steered = sys.argv[5] or None, int(sys.argv[6]), sys.argv[7] == "steered"  # log: a database
CLIENTS, AGAIN = 2, 20
wal_checkpointer.PIECE, wal_checkpointer.WHOLE = 200, 400  # pages: so small that every life copies its log
MOST = 8  # files of three checkpoints, and of one that was not finished
settings, _ = read_file(path)
compile_paths(make_bandit(settings), settings)  # compiles
if steered:
    candidate.NEAR, candidate.STEP = 20, 30  # places: so few that candidates read the log in steps
rng, wrong, lives = np.random.default_rng(seed), [], 0
decided, paid, counts = {}, {}, {"decisions": 0, "outcomes": 0, "again": 0}
asked, forgotten, found = {}, set(), {"verified": 0, "equal": 0, "forgotten": 0}  # asked: of the operator
corrected = 0  # joins that a late outcome corrected

def ask(link, place, body):
    link.request("POST", f"/v1/news/{place}", json.dumps(body), {"content-type": "application/json"})
    answer = link.getresponse()
    text = answer.read()
    if answer.status not in (200, 204):
        wrong.append([lives, place, text.decode()])
    return text

def client(who, port, life, open_):
    '''Ask until the service is gone; what has no answer stays in `open_`.'''
    mine, number = np.random.default_rng([seed, who, life]), 0
    try:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
        while True:
            if not open_:
                id, number = f"{life}.{who}.{number}", number + 1
                body = {"context": mine.standard_normal(3).tolist(), "arms": ["a", "b", "c"], "id": id,
                        "defer": bool(mine.random() < 0.2), "slots": int(mine.integers(1, 3))}
                if steered:
                    body |= {"subject": f"{life}.{who}.{number // 4}", "slots": 1}
                open_.append(["decide", body])
                if body["defer"] and mine.random() < 0.5:
                    open_.append(["activate", {"id": id}])
                outcome = {"id": id, "value": round(float(mine.random()), 3), "key": "k"}
                open_ += [["outcome", outcome]] * int(mine.integers(0, 3))
                if steered and decided and mine.random() < 0.4:
                    late = [*decided][int(mine.integers(0, len(decided)))]
                    open_.append(["outcome", {"id": late, "value": 1.0, "key": "late"}])
            place, body = open_[0]
            text = ask(link, place, body)
            if place == "decide":
                decided[body["id"]] = (body, text)
                counts["decisions"] += 1
            elif place == "outcome":
                paid[body["id"]] = (body, paid.get(body["id"], (0, 0))[1] + json.loads(text)["new"])
                counts["outcomes"] += 1
            open_.pop(0)
    except (OSError, http.client.HTTPException):
        return

def operate(port, life):
    '''Steer the service until it is gone.'''
    mine = np.random.default_rng([seed, 7, life])
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=200)

    def told(method, place, body=None):
        text = None if body is None else json.dumps(body)
        link.request(method, f"/v1/news{place}", text, {"content-type": "application/json"})
        answer = link.getresponse()
        text = answer.read().decode()
        if answer.status not in (200, 204, 404, 409):
            wrong.append([life, method, place, text])
        elif answer.status < 300:
            asked[f"{method} {place}"] = asked.get(f"{method} {place}", 0) + 1
        return json.loads(text) if text else None

    try:
        while True:
            time.sleep(mine.uniform(0.0, 0.15))
            what = mine.choice(["model", "model", "promote", "give up", "back", "forget"])
            if what == "model":
                present = told("GET", "")["settings"]
                present["model"]["arguments"]["reg"] = float(mine.choice([0.5, 1.0, 2.0, 4.0]))
                present["mode"] = str(mine.choice(["canary", "canary", "online"]))
                present["reward"]["aggregation"] = str(mine.choice(["earliest", "max", "sum"]))
                told("PUT", "", present)
            elif what == "promote":
                told("POST", "/promote", {})
            elif what == "give up":
                told("DELETE", "/candidate")
            elif what == "back":
                each = told("GET", "/models")["checkpoints"]
                if each:
                    name = each[int(mine.integers(0, len(each)))]["name"]
                    told("POST", "/rollback", {"checkpoint": name, "learn": bool(mine.random() < 0.5)})
            elif decided:
                subject = decided[[*decided][int(mine.integers(0, len(decided)))]][0]["subject"]
                forgotten.add(subject)
                told("POST", "/forget", {"subject": subject})
    except (OSError, http.client.HTTPException):
        return

def verified(store):
    '''Every model of the log, decided again.'''
    for line in read_lineage(store, "news").each:
        one = verify(Fold.resume(store, "news", first=True, line=line))
        if not one.ok or one.others or one.left.keys() - {FORGOTTEN}:
            wrong.append([lives, f"verify model {line}: {one}"])
        found["verified"] += 1
        found["equal"] += one.equal
        found["forgotten"] += one.left.get(FORGOTTEN, 0)

def checked(port):
    '''What was answered before is answered the same, and paid outcomes are there already.'''
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    ids = [id for id, (body, _) in decided.items() if body.get("subject") not in forgotten]
    for id in [ids[place] for place in rng.integers(0, len(ids), AGAIN)] if ids else []:
        body, text = decided[id]
        if ask(link, "decide", body) != text:
            wrong.append([lives, "another answer", id])
        if id in paid and json.loads(ask(link, "outcome", paid[id][0]))["new"]:
            wrong.append([lives, "counted twice", id])
        counts["again"] += 1
    link.close()

def started():
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = lambda address: os.write(theirs, address.encode() + b"|")
            server.serve(data, [path], port=0, log=log, listening=told)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    os.close(theirs)
    told = b""
    while not told.endswith(b"|"):
        part = os.read(ours, 100)
        if not part:
            raise SystemExit("the service did not start")
        told += part
    os.close(ours)
    return child, int(told[:-1].rpartition(b":")[2])

open_ = [[] for _ in range(CLIENTS)]
def enough():
    '''On a slow machine lives are short, and there are more of them.'''
    steps = not steered or (corrected and asked.get("PUT ") and asked.get("POST /forget"))
    done = counts["decisions"] > 5 * kills < counts["again"] / 2 and steps
    return lives >= kills and (done or lives > 100 + kills)

def settle(port):
    '''Wait until everything is joined and learned: a stop leaves for the next start what it cannot do in seconds.'''
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    while True:
        link.request("GET", "/metrics")
        text = link.getresponse().read().decode()
        left = re.findall(r'^onepass_(?:pending_decisions|learner_queue)\{loop="news"\} (\S+)$', text, re.M)
        if [*map(float, left)] == [0.0, 0.0]:
            return link.close()
        time.sleep(0.02)

while not enough():
    child, port = started()
    checked(port)
    threads = [threading.Thread(target=client, args=(who, port, lives, open_[who])) for who in range(CLIENTS)]
    if steered:
        threads.append(threading.Thread(target=operate, args=(port, lives)))
    [one.start() for one in threads]
    time.sleep(rng.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    [one.join() for one in threads]
    lives += 1
    if steered:
        with open_store(log or f"{data}/news.sqlite") as store:
            verified(store)
            corrected = sum(one.again for one in store.read(kinds=["join"]))

child, port = started()
checked(port)
settle(port)
os.kill(child, signal.SIGTERM)
if os.waitpid(child, 0)[1] != 0:
    wrong.append([kills, "it did not end well"])
with open_store(log or f"{data}/news.sqlite") as store:
    wrong += [[kills, f"{damage}"] for damage in store.check()]
    kinds = {kind: list(store.read(kinds=[kind])) for kind in ("decision", "outcome", "join")}
    logged = {one.id: one for one in kinds["decision"]}
    for id, (body, text) in decided.items():
        if body.get("subject") in forgotten:
            continue
        if id not in logged or json.loads(text)["propensity"] != decision_answer(logged[id]).propensity:
            wrong.append([kills, "lost", id])
    keys = [(one.id, one.request) for one in kinds["outcome"]]
    gone = {id for id, (body, _) in decided.items() if body.get("subject") in forgotten}
    if len(keys) != len(set(keys)) or not paid.keys() <= {id for id, _ in keys} | gone:
        wrong.append([kills, "outcomes lost, or there twice"])
    joins = [one for one in kinds["join"] if not one.again]
    joined = {one.id: one for one in joins}
    if len(joined) != len(joins):
        wrong.append([kills, "joined twice"])
    values = {one.id: one for one in kinds["outcome"]}
    for id, one in logged.items() if not steered else ():
        due = one.extra["due"]
        done = [a.time <= due for a in store.find("news", id) if isinstance(a, Activation)]
        counts_ = any(done) if one.deferred else True
        in_time = id in values and values[id].time <= due
        paid_ = values[id].value if in_time else 0.0
        wanted = [paid_] * len(one.places) if counts_ else None
        if (joined[id].rewards if id in joined else None) != wanted:
            wrong.append([kills, "joined otherwise", id])
    verified(store)
    if not steered and found["equal"] != len(logged):
        wrong.append([kills, f"verified otherwise: {found}"])
    lines = read_lineage(store, "news")
    twin = Fold.resume(store, "news") if steered else Fold(store, "news", make_bandit(settings))
    twin.advance()
    files = list((data / "news.models").iterdir())
    if len(files) > (MOST if not steered else 2 * (2 * checkpoints.KEPT + 2 * checkpoints.FORMER + 1)):
        wrong.append([kills, f"left behind: {files}"])
    saved = checkpoints.newest_checkpoint(data / "news.models", store, "news", lines.serving)
    if op.to_bytes(twin.bandit) != op.to_bytes(saved.bandit):
        wrong.append([kills, "the model is another"])
    counts.update(joins=len(joined), corrections=len(kinds["join"]) - len(joins), **found, **asked)
print(json.dumps([wrong, counts]))
"""


def killed(folder, kills, log="", seed=0, steered=False):
    """What was wrong, and how much there was. folder: for all files; kills: how many; log: a database, default none;
    seed: of what is asked; steered: whether an operator changes things meanwhile."""
    settings = write_settings(folder, RULES if steered else "", wait=0.15)
    if steered:
        settings.write_text(settings.read_text().replace("[reward]\n", '[reward]\nlate = "correct"\n'))
    command = [sys.executable, "-c", KILLING, str(folder / "data"), str(settings), str(kills)]
    rest = [str(STEERED if steered else LONGEST), log, str(seed), "steered" if steered else ""]
    told = subprocess.run([*command, *rest], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)
