"""The page in Chromium, against a service in a process of its own; and the JSON that it is made of."""

import json
import shlex
import subprocess
import time
from itertools import count, pairwise

import pytest

from browser import CHROMIUM, Browser
from onepass.service import simulation
from onepass.service.drift import EVERY
from onepass.service.keys import hash_key
from onepass.service.page import FOLDER, KINDS
from patience import PATIENCE, until
from service_process import RunningService

chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)")
LOOP = """
name = "demo"
arms = ["local", "sport", "economy", "culture", "weather"]
[features]
context = ["morning", "mobile", "returning", "one"]
[model]
recipe = "OFUL"
seed = 2
[model.arguments]
model = "disjoint"
reg = 0.5
exploration = {kind = "Thompson", exploration = 0.4, draws = 5, uniform_share = 0.2}
[reward]
wait = 0.5
"""
ASKED = {"context": {"mobile": 1.0, "one": 1.0}}
KEY, POOR = "onepass_of_these_tests", "onepass_that_only_pays"
KEYS = """
[[keys]]
roles = ["admin"]
sha256 = "{}"
[[keys]]
roles = ["reward"]
sha256 = "{}"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "demo.toml"
    path.write_text(LOOP + KEYS.format(hash_key(KEY), hash_key(POOR)))
    service = RunningService(folder / "data", path, key=KEY)
    yield service
    assert service.stop() == 0


@pytest.fixture
def client(served):
    return served.client


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    try:
        found = Browser(tmp_path_factory.mktemp("chromium"))
    except (OSError, AssertionError) as error:
        pytest.skip(f"Chromium does not start on this machine: {error}")
    yield found
    found.close()


@pytest.fixture(scope="module")
def visited(served):
    """The service, after a hundred visits at least."""
    found, end = 0, time.monotonic() + PATIENCE
    while found < 100:
        assert time.monotonic() < end
        visitors = simulation.simulate(
            str(served.client.base_url), rate=1000.0, seconds=0.5, key=KEY, tell=lambda _: None
        )
        found += visitors.shown
    return served


@pytest.fixture
def page(visited, browser):
    """The page of the loop, once it shows a value."""
    served = visited
    served.ready("demo")
    browser.open(served.client.base_url)
    browser.until(f"{ASKS} || {SHOWS}")
    if browser.run(ASKS):
        given(browser, KEY)
    browser.until(
        "document.querySelectorAll('#value .curve').length === 3 && !!document.querySelector('#one-picture svg')"
    )
    return browser


ASKS = "!document.querySelector('#key').hidden"
SHOWS = "!document.querySelector('#content').hidden"


def given(browser, key):
    """Put a key into the field of the page."""
    browser.run(f"document.querySelector('#key-field').value = {json.dumps(key)}")
    browser.run("document.querySelector('#key button').click()")


# ---- JSON ----


def overview(served):
    """What the page is made of, once everything that was taken is in it."""
    served.ready("demo")

    def whole():
        found = served.client.get("/v1/demo/overview").json()
        return found if found["through"] >= found["numbers"]["last"] else None

    return until(whole)


def test_decisions_and_rewards_are_in_the_overview(served, client):
    before = overview(served)["counts"]
    ids = [client.post("/v1/demo/decide", json=ASKED).json()["id"] for _ in range(5)]
    client.post("/v1/demo/outcome", json=[{"id": each, "value": 1.0} for each in ids[:2]])
    found = overview(served)
    assert found["counts"]["decision"] == before.get("decision", 0) + 5
    assert found["counts"]["outcome"] == before.get("outcome", 0) + 2
    assert found["latest"][0] == ids[-1]
    assert (found["mode"], found["first"], found["trouble"]) == ("online", "local", None)
    assert found["value"]["shown"][1] <= found["value"]["shown"][0] <= found["value"]["shown"][2]
    assert found["model"]["memory"] > 0
    assert found["model"]["error_bound"] == 0.0
    assert found["drift"]["every"] == EVERY
    assert 'onepass_drift_alarms{loop="demo"} 0.0' in client.get("/metrics").text


def test_a_decision_is_found_with_its_records_and_explained(served, client):
    answers = {}

    def act(id):
        answers[id] = client.post("/v1/demo/decide", json={**ASKED, "id": id}).json()
        client.post("/v1/demo/outcome", json={"id": id, "value": 1.0})

    identity = served.in_time("an id/with ? and ünï", act, "demo")
    made = answers[identity]
    served.ready("demo")
    found = client.get("/v1/demo/event", params={"id": identity}).json()
    assert [one["kind"] for one in found["records"]] == ["decision", "outcome", "join"]
    assert found["decision"] == made
    terms = {term["name"]: term["contribution"] for term in found["explanation"]["terms"]}
    assert terms.keys() == {"morning", "mobile", "returning", "one"}
    assert sum(terms.values()) == pytest.approx(found["explanation"]["mean"])
    assert found["explanation"]["arm"] == made["arm"]


def test_what_is_not_there_is_refused_in_the_same_shape(client):
    for path, status, code in (
        ("/v1/demo/event?id=nobody", 404, "EventNotFound"),
        ("/v1/demo/event", 400, "BadArgument"),
        ("/v1/other/overview", 401, "Unauthorized"),
        ("/page/nothing.js", 404, "NotFound"),
        ("/page/..%2fpage.py", 404, "NotFound"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_the_page_comes_from_here_alone_and_may_load_nothing_else(client):
    for path in ("/", "/demo", *(f"/page/{file.name}" for file in FOLDER.iterdir())):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert answer.status_code == 200
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    for file in FOLDER.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, which nobody asks for
        assert file.suffix in KINDS
        assert "://" not in text
        assert "innerHTML" not in text
        assert " style=" not in text


def test_only_keys_that_read_see_names_and_numbers(client):
    assert client.get("/v1").json() == {"loops": ["demo"], "keys": True}
    for key, status in (("", 401), ("none", 401), (POOR, 403)):
        headers = {"authorization": f"Bearer {key}" if key else "none"}
        assert client.get("/v1", headers=headers).json()["loops"] == []
        for path in ("/v1/demo/overview", "/v1/demo/event?id=e"):
            assert client.get(path, headers=headers).status_code == status
        assert client.get("/other", headers=headers).text == client.get("/", headers=headers).text


# ---- in a browser ----


@chromium
def test_a_key_is_asked_for_kept_in_the_tab_and_forgotten_with_it(served, browser):
    browser.open(served.client.base_url)
    browser.run("sessionStorage.clear()")
    browser.open(f"{served.client.base_url}/demo")
    browser.until(ASKS)
    assert not browser.run(SHOWS)
    given(browser, POOR)
    browser.until("document.querySelector('#key-said').innerText.includes('the key must have the role read')")
    given(browser, KEY)
    browser.until(SHOWS)
    assert browser.run("document.cookie") == ""
    assert browser.run("localStorage.length") == 0
    assert not browser.run(ASKS)


@chromium
def test_an_empty_loop_shows_the_command_of_its_first_decision(tmp_path, browser):
    path = tmp_path / "empty.toml"
    path.write_text(LOOP.replace('name = "demo"', 'name = "empty"').replace('"local"', '"lo\'cal"'))
    served = RunningService(tmp_path / "data", path)
    browser.open(f"{served.client.base_url}/empty")
    browser.until("!document.querySelector('#start').hidden && !!document.querySelector('#start-command').innerText")
    command = browser.run("document.querySelector('#start-command').innerText")
    assert command.startswith("curl -H 'content-type: application/json' 'http://127.0.0.1")
    said = subprocess.run(shlex.split(command), capture_output=True, check=True).stdout
    assert json.loads(said)["arm"] in ("lo'cal", "sport", "economy", "culture", "weather")
    browser.until("document.querySelector('#start').hidden")
    assert served.stop() == 0


@chromium
def test_decisions_and_rewards_made_by_a_client_appear_on_the_page(served, client, page):
    shown = "document.querySelector('#facts').innerText"
    assert "Above always local" in page.run(shown)
    reward_the_first_arm(served, client)
    page.until(f"/reward a decision/.test({shown}) && /[+−]?[0-9.]+ \\([+−]?[0-9.]+%\\)/.test({shown})")
    count, answers = overview(served)["counts"]["decision"], {}

    def act(id):
        answers[id] = client.post("/v1/demo/decide", json={**ASKED, "id": id}).json()
        client.post("/v1/demo/outcome", json={"id": id, "value": 1.0, "key": "bought"})

    identity, _, _ = (served.in_time(f"made by a client {number}", act, "demo") for number in range(3))
    page.until(f"{shown}.includes({json.dumps(f'{count + len(answers):,}')})")
    page.run(f"document.querySelector('#find-field').value = {json.dumps(identity)}")
    page.run("document.querySelector('#find button').click()")
    page.until(f"document.querySelector('#one').innerText.includes({json.dumps(identity)})")
    served.ready("demo")
    page.run("document.querySelector('#find button').click()")
    text = page.until(
        "document.querySelector('#one').innerText.includes('learned as 1') && document.querySelector('#one').innerText"
    )
    assert f"{answers[identity]['arm']} was shown" in text
    assert "outcome 1 (bought)" in text
    page.run("document.querySelector('#find-field').value = '<b>nobody</b>'")
    page.run("document.querySelector('#find button').click()")
    page.until("document.querySelector('#one').innerText.includes('<b>nobody</b>')")
    assert page.run("document.querySelector('#one b')") is None
    assert [one for one in page.errors if "404" not in one.get("text", "")] == []


def reward_the_first_arm(served, client):
    """Reward a decision for the first arm in time: of nothing there is no percentage, and on a slow machine the clicks
    of all simulated visitors come too late."""
    arms = {}

    def act(id):
        arms[id] = client.post("/v1/demo/decide", json={**ASKED, "id": id}).json()["arm"]
        client.post("/v1/demo/outcome", json={"id": id, "value": float(arms[id] == "local")})

    ids = (served.in_time(f"rewarded {number}", act, "demo") for number in count())
    assert next(id for id in ids if arms[id] == "local")
    served.ready("demo")


PARTS = {
    "#verdict, #sentence": "chance|always|compare|learned|tell|decided",
    "#facts": "Reward a decision|Above always local|Above each as likely|Decisions|Spent on exploring|Rewards awaited",
    "#value-about": "limits of 95%",
    "#shares-about": "How often each was shown",
    "#health": "Model|of memory|Certified error|Behind|Outcomes|Drift alarms|Settings",
    "#one": "was shown, with probability|Now the model expects|decided",
    "#find": "Id of a decision",
}


@chromium
def test_everything_that_was_promised_is_on_the_page(client, page):
    """What is it doing now and is it worth it; an evaluation beside it."""
    asked = {"id": "promised", "policies": [{"name": "any", "kind": "uniform"}]}
    assert client.post("/v1/demo/evaluations", json=asked).status_code in (200, 201, 202)
    page.until("/promised/.test(document.querySelector('#evaluations').innerText)")
    page.until(
        "/too wide to tell|known|better|not to be believed/.test(document.querySelector('#evaluations').innerText)"
    )
    for where, what in PARTS.items():
        said = page.run(f"[...document.querySelectorAll({json.dumps(where)})].map((one) => one.innerText).join(' ')")
        words = what.split("|")
        found = [word for word in words if word.lower() in said.lower()]
        assert found if where.startswith("#verdict") else found == words, (where, said)


ALARMED = """
import("/page/chart.js").then(({ curves }) => {
  const points = [[0, 0.2, 0.1, 0.3], [10, 0.3, 0.2, 0.4]];
  curves(document.querySelector("#value"), "still", [{ kind: "shown", label: "x", points }]);
  const before = document.querySelectorAll("#value .alarm").length;
  const marked = [{ time: 4, text: "Drift alarm" }, { time: 99, text: "out of sight" }];
  curves(document.querySelector("#value"), "marked", [{ kind: "shown", label: "x", points }], marked);
  window.alarms = [before, ...[...document.querySelectorAll("#value .alarm")].map((one) => one.textContent)];
})
"""


@chromium
def test_drift_alarms_are_upright_lines_in_the_curves_and_name_their_time(page):
    page.run(ALARMED)
    page.until("!!window.alarms")
    assert page.run("window.alarms") == [0, "Drift alarm"]


WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@chromium
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_screen(served, page, width):
    page.open(f"{served.client.base_url}/demo", width=width, height=900)
    page.until("document.querySelectorAll('#value .curve').length === 3")
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.run(WIDE) == 0


CONTRAST = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = parts(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const said = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!said || !node.getClientRects().length || ["SCRIPT", "OPTION", "title"].includes(node.tagName)) continue;
    const style = getComputedStyle(node), svg = node instanceof SVGElement;
    const ink = light(parts(svg ? style.fill : style.color)), under = light(ground(node));
    found.push([(Math.max(ink, under) + 0.05) / (Math.min(ink, under) + 0.05), node.textContent.trim().slice(0, 40)]);
  }
  return found;
})()
"""
CURVES = "[...document.querySelectorAll('#value .curve')].map((one) => getComputedStyle(one).stroke)"


@chromium
def test_every_text_stands_out_from_its_ground_in_light_and_dark(page):
    grounds = {}
    for scheme in ("light", "dark"):
        page.look(scheme)
        page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        grounds[scheme] = page.run("getComputedStyle(document.body).backgroundColor")
        found = page.run(CONTRAST)
        assert len(found) > 50
        assert min(found)[0] >= 4.5, min(found)
        assert len(set(page.run(CURVES))) == 3
    assert grounds["light"] != grounds["dark"]


NAMELESS = """
[...document.querySelectorAll("button, a, input, summary, svg[role], [tabindex='0'], section")].filter((node) => !(
  node.textContent.trim() || node.getAttribute("aria-label") || (node.labels && node.labels.length)
)).map((node) => node.outerHTML.slice(0, 80))
"""
TITLED = """
[...document.querySelectorAll("section")]
  .every((one) => document.getElementById(one.getAttribute("aria-labelledby")).textContent)
"""


@chromium
def test_a_reader_of_another_kind_finds_landmarks_headings_names_and_tables(page):
    count = "document.querySelectorAll({}).length".format
    for landmark in ("header", "nav[aria-label]", "main", "footer", "h1", "html[lang]", "[role=search]"):
        assert page.run(count(json.dumps(landmark))) == 1, landmark
    assert page.run(NAMELESS) == []
    assert page.run(TITLED)
    levels = page.run("[...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))")
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = page.run("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    for picture in ("value", "shares"):
        assert page.run(f"document.querySelector('#{picture} svg').getAttribute('role')") == "img"
        assert page.run(f"document.querySelectorAll('#{picture}-table th[scope]').length") > 3
    assert page.run("document.querySelector('#verdict').getAttribute('aria-live')") == "polite"
    page.run("document.querySelector('.skip').focus()")
    seen = []
    for _ in range(8):
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        seen.append(page.run("document.activeElement.id || document.activeElement.tagName"))
    assert {"A", "SUMMARY", "find-field", "BUTTON"} <= set(seen)
