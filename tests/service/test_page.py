"""The pages in a real browser: a case is decided, what happens now is shown, and nobody else is asked."""

import json
import os
import re
import shutil

import httpx2
import numpy as np
import pandas as pd
from playwright.sync_api import expect, sync_playwright
import pytest

from emsco import EMSCOClassifier, MultiStageClassifier, Prices, load
from tests.report.test_browser import ARGUMENTS, CHROMIUM
from tests.service.conftest import HEART, HOSTILE, PRICES, mixed_cases
from tests.service.test_server import process

DESK, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def browser():
    """Skip without a browser, unless EMSCO_REQUIRE_ALL says that it must be there."""
    if CHROMIUM is None:
        if os.environ.get("EMSCO_REQUIRE_ALL"):
            pytest.fail("EMSCO_REQUIRE_ALL is set, but there is no chromium.")
        pytest.skip("no chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(folder, tmp_path_factory):
    here = tmp_path_factory.mktemp("page")
    shutil.copytree(folder, here / "models")
    with process(here / "models", "--outcomes", here / "outcomes.db", cwd=here) as service:
        service.models = here / "models"
        yield service


@pytest.fixture
def open_page(browser, service):
    """Open pages; at the end nothing may have gone wrong in them, and nothing been asked from elsewhere."""
    contexts, troubles = [], []

    def open_(path, **settings):
        context = browser.new_context(**{"viewport": DESK, **settings})
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=service.url)
        contexts.append(context)
        page = context.new_page()
        page.troubles = troubles
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("request", lambda r: None if r.url.startswith((service.url, "data:")) else troubles.append(r.url))
        page.goto(service.url + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert troubles == []


def heading(page, text):
    expect(page.locator("#question-h")).to_have_text(text, timeout=30_000)


def decided_by(clf, values):
    session = clf.session()
    session.give(values)
    return session.step()


def test_a_case_is_decided_by_keyboard(open_page, fitted):
    page = open_page("/?model=mixed")
    heading(page, "Stage 1 of 3: age")
    page.keyboard.type("30")
    page.keyboard.press("Enter")
    heading(page, "Stage 2 of 3: smokes, country")
    page.keyboard.press("Space")  # the first choice, 0
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")  # from DE to FR
    page.keyboard.press("Enter")
    values = {"age": 30, "smokes": 0, "country": "FR"}
    answer = decided_by(fitted["mixed"], values)
    if hasattr(answer, "columns"):
        heading(page, "Stage 3 of 3: panel")
        page.keyboard.type("139")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.type("-1")
        page.keyboard.press("Enter")
        answer = decided_by(fitted["mixed"], {**values, "sodium": 139, HOSTILE: -1})
    heading(page, "Decision")
    assert page.inner_text(".verdict-card .label") == answer.label
    assert f"{100 * answer.confidence:.1f}\u00a0%" in page.inner_text(".verdict-card")
    assert page.inner_text("#paid") == f"{answer.cost:g}"
    expect(page.locator("#question-h")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # a new case
    heading(page, "Stage 1 of 3: age")
    expect(page.locator("#field-0")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_case_is_decided_on_a_phone_with_an_unavailable_value(open_page, fitted, scheme):
    page = open_page("/?model=mixed", viewport=PHONE, color_scheme=scheme, has_touch=True, is_mobile=True)
    heading(page, "Stage 1 of 3: age")
    page.fill("#field-0", "55")
    page.tap("button.main")
    heading(page, "Stage 2 of 3: smokes, country")
    page.tap("[name=field-0][value='1']")
    page.tap("[data-missing=country]")
    page.tap("button.main")
    values = {"age": 55, "smokes": 1, "country": None}
    if hasattr(decided_by(fitted["mixed"], values), "columns"):
        heading(page, "Stage 3 of 3: panel")
        assert page.inner_text("legend") == "panel (30)"
        assert page.inner_text(".field >> nth=0").startswith("sodium in serum")
        assert "mmol/l" in page.inner_text(".field >> nth=0")
        assert page.inner_text(".field:nth-of-type(2) label.name") == HOSTILE
        page.tap("[data-missing=sodium]")
        assert page.is_disabled("#field-0")
        page.fill("#field-1", "0.25")
        page.tap("button.main")
        values |= {"sodium": None, HOSTILE: 0.25}
    expect(page.locator("#decision")).to_be_visible(timeout=30_000)
    answer = decided_by(fitted["mixed"], values)
    assert f"{100 * answer.confidence:.1f}\u00a0%" in page.inner_text(".verdict-card")
    assert "not available" in page.inner_text("#given")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_what_is_left_open_or_wrong_is_said_and_nothing_is_sent(open_page):
    page = open_page("/?model=mixed")
    heading(page, "Stage 1 of 3: age")
    page.keyboard.press("Enter")
    assert page.inner_text(".error") == "Fill it in, or say that it is not available."
    expect(page.locator("#field-0")).to_be_focused()
    page.keyboard.type("--")
    page.keyboard.press("Enter")
    assert page.inner_text(".error") == "This is not a number."
    heading(page, "Stage 1 of 3: age")


def test_numbers_beyond_training_are_questioned_and_taken(open_page, fitted):
    page = open_page("/?model=heart")
    expect(page.locator("#form .field").first).to_be_visible(timeout=30_000)
    name = page.get_attribute("#form .field", "data-column")
    described = httpx2.get(f"{page.url.partition('?')[0]}models/heart").json()
    columns = {c["name"]: c for feature in described["features"] for c in feature["columns"]}
    hint = page.locator(".hintline >> nth=0")
    if columns[name]["range"]:
        page.fill("#field-0", str(columns[name]["range"][1] * 3 + 1))
        expect(hint).to_contain_text("Is that right?")
    else:
        expect(hint).to_contain_text("Usually")


def finish(page, values):
    """Decide a case of the mixed model."""
    heading(page, "Stage 1 of 3: age")
    page.fill("#field-0", str(values["age"]))
    page.click("button.main")
    heading(page, "Stage 2 of 3: smokes, country")
    page.check(f"[name=field-0][value='{values['smokes']}']")
    page.check(f"[name=field-1][value='{values['country']}']")
    page.click("button.main")
    page.wait_for_selector("#decision:visible, fieldset.panel-of:visible", timeout=30_000)
    if page.locator("fieldset.panel-of").count():
        page.fill("#field-0", str(values["sodium"]))
        page.fill("#field-1", str(values[HOSTILE]))
        page.click("button.main")
    expect(page.locator("#decision")).to_be_visible(timeout=30_000)


CASE = {"age": 44, "smokes": 1, "country": "DE", "sodium": 138, HOSTILE: 0.1}


def test_the_decision_has_its_reasons_and_can_be_copied_printed_and_changed(open_page, fitted):
    page = open_page("/?model=mixed")
    finish(page, CASE)
    answer = decided_by(fitted["mixed"], CASE)
    n_features = sum(len(stage.features) for stage in fitted["mixed"].stages_[: answer.stage + 1])
    idle = page.inner_text(".idle") if page.locator(".idle").count() else ""
    assert page.locator(".reasons li").count() + (idle.count(",") + 1 if idle else 0) == n_features
    assert page.locator("#path circle.stop").count() == answer.stage + 1
    page.click("#copy")
    expect(page.locator("#copy")).to_have_text("Copied")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == page.inner_text("#text")
    assert f"confidence {100 * answer.confidence:.1f} %" in text or f"has {100 * answer.confidence:.1f} %" in text
    assert "age: 44" in text
    assert "Decided 20" in text
    assert page.is_hidden(".record")
    page.emulate_media(media="print")
    printed = page.inner_text(".record")
    assert re.fullmatch(r"EMSCO case, model mixed, version \w{16}\. Decided [\d-]{10} [\d:]{5} UTC\. Id: \S+", printed)
    assert printed.split()[-1] in text
    assert page.is_hidden(".actions")
    assert page.is_visible(".verdict-card")
    assert page.is_visible("#given")
    page.emulate_media(media="screen")
    page.click("[aria-label='Change the values of stage 1']")
    heading(page, "Stage 1 of 3: age")
    assert page.input_value("#field-0") == "44"
    page.fill("#field-0", "88")
    page.click("button.main")
    expect(page.locator("#decision")).to_be_visible(timeout=30_000)
    assert f"{100 * decided_by(fitted['mixed'], {**CASE, 'age': 88}).confidence:.1f}" in page.inner_text(
        ".verdict-card"
    )


def test_a_hostile_name_is_shown_as_it_is(open_page):
    page = open_page("/?model=mixed")
    heading(page, "Stage 1 of 3: age")
    page.check("[data-missing=age]")
    page.click("button.main")
    heading(page, "Stage 2 of 3: smokes, country")
    page.check("[data-missing=smokes]")
    page.check("[data-missing=country]")
    page.click("button.main")
    heading(page, "Stage 3 of 3: panel")
    assert page.inner_text(".field >> nth=1").startswith("</script><img src=x onerror=alert(1)>&")
    assert page.locator("img").count() == 0
    page.fill("#field-0", "140")
    page.fill("#field-1", "0")
    page.click("button.main")
    expect(page.locator("#decision")).to_be_visible(timeout=30_000)
    assert page.locator("img").count() == 0
    live = open_page("/live?model=mixed")
    expect(live.locator("#columns")).to_contain_text("onerror", timeout=30_000)
    assert live.locator("img").count() == 0
    assert open_page("/explore?model=mixed").locator("img").count() == 0


@pytest.mark.parametrize("path", ["/?model=mixed", "/live?model=mixed", "/explore?model=mixed"])
def test_the_policy_stops_an_injected_script(open_page, service, path):
    page = open_page(path)
    page.evaluate(
        """() => {
            const attack = "<img src=x onerror='window.hacked = 1'><b onclick='window.hacked = 1' id=trap>x</b>";
            document.body.insertAdjacentHTML("beforeend", attack);
            const script = document.createElement("script");
            script.textContent = "window.hacked = 1";
            document.body.append(script);
            const other = document.createElement("script");
            other.src = "https://evil.example/x.js";
            document.body.append(other);
        }"""
    )
    page.click("#trap")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    refused = [said for said in page.troubles if "Content Security Policy" in said]
    assert len(refused) >= 4
    page.troubles.clear()
    policy = httpx2.get(service.url + path).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_the_truth_can_be_sent_from_the_page(open_page):
    page = open_page("/?model=mixed")
    finish(page, CASE)
    page.select_option("#truth", "1")
    page.click(".truth button")
    expect(page.locator(".truth [role=status]")).to_have_text("Stored.", timeout=30_000)


def test_live_shows_counts_and_alarms(open_page, service, fitted):
    rows = HEART.data.iloc[200:]
    for _ in range(8):
        answer = httpx2.post(
            f"{service.url}/models/heart/decide", json={"rows": json.loads(rows.to_json(orient="records")), "ids": True}
        ).json()
        outcomes = [{"id": d["id"], "truth": 1 - d["best_guess"]} for d in answer["decisions"]]
        httpx2.post(f"{service.url}/models/heart/outcomes", json={"outcomes": outcomes})
    page = open_page("/live?model=heart")
    expect(page.locator("tr.alarm")).to_contain_text("accuracy", timeout=60_000)
    expect(page.locator("#problem")).to_have_text("An alarm was raised: see below.")
    assert page.locator("#exits tbody tr").count() == 1 + len(fitted["heart"].stages_)
    n_cases = int(page.inner_text(".tile .value >> nth=0").replace(",", ""))
    assert n_cases >= 792
    page.select_option("#model", "mixed")
    expect(page.locator("#headline")).to_have_text("What mixed decides now", timeout=30_000)


def test_explore_is_the_report_with_the_other_pages(open_page, fitted):
    page = open_page("/explore?model=heart")
    assert page.locator("#scatter .point").count() == len(fitted["heart"].front_)
    page.click("nav.places >> text=Decide")
    expect(page.locator("#model")).to_have_value("heart", timeout=30_000)
    page.click("nav.places >> text=Live")
    expect(page.locator("#headline")).to_contain_text("heart", timeout=30_000)


def test_a_case_goes_on_when_the_model_is_replaced(open_page, service, folder):
    path = service.models / "promising.emsco"
    page = open_page("/?model=promising")
    heading(page, "Stage 1 of 3: age")
    clf = load(folder / "promising.emsco")
    clf.save(path, notes={"new": True})
    service.wait_for("model loaded", n=2, model="promising")
    page.fill("#field-0", "50")
    page.click("button.main")
    expect(page.locator("#problem")).to_contain_text("replaced by a new version", timeout=30_000)
    assert "Stage 1 of 3" not in page.inner_text("#question-h")
    assert all("409" in said for said in page.troubles)
    page.troubles.clear()


def test_a_comma_is_no_part_of_a_number_and_an_odd_one_is_asked_back(open_page):
    page = open_page("/?model=heart")
    expect(page.locator("#form .field").first).to_be_visible(timeout=30_000)
    field = page.locator(".field", has=page.locator("input[inputmode=decimal]")).first
    field.locator("input[inputmode=decimal]").fill("38,1")
    page.click("button.main")
    expect(field.locator(".error")).to_have_text("Write 38.1, with a point.", timeout=30_000)
    for text, said in {
        "63,960": "Write 63960 or 63.960: the comma may mean either.",
        "1,234,567.5": "Write 1234567.5, without commas.",
        "0,125": "Write 0.125, with a point.",
        "1 500": "This is not a number.",
    }.items():
        field.locator("input[inputmode=decimal]").fill(text)
        page.click("button.main")
        expect(field.locator(".error")).to_have_text(said)
    field.locator("input[inputmode=decimal]").fill("-60000000")
    expect(field.locator(".hintline")).to_contain_text("Is that right?")


def test_no_truth_is_preselected(open_page):
    page = open_page("/?model=mixed")
    finish(page, CASE)
    assert page.locator("#truth").input_value() == ""


@pytest.mark.parametrize("place", ["/", "/live", "/explore"])
def test_the_address_of_a_model_that_is_gone_opens_no_other(service, place):
    answer = httpx2.get(service.url + place, params={"model": "nope"})
    assert answer.status_code == 404
    assert "there is no model of this name" in answer.json()["detail"]


def test_a_corrected_case_counts_once_on_the_page_live(open_page, service):
    before = httpx2.get(f"{service.url}/models/promising/live").json()["cases"]
    page = open_page("/?model=promising")
    heading(page, "Stage 1 of 3: age")
    for _ in range(3):
        for box in page.locator("#form input[data-missing]").all():
            box.check()
        if not page.locator("#form").is_visible():
            break
        page.locator("#form button.main").click()
        page.wait_for_timeout(300)
    expect(page.locator("#decision")).to_be_visible()
    page.get_by_role("button", name="Change the values of stage 1").click()
    page.locator("#form input[data-missing]").uncheck()
    page.locator("#form input[type=text]").fill("44")
    page.locator("#form button.main").click()
    expect(page.locator("#decision")).to_be_visible()
    after = httpx2.get(f"{service.url}/models/promising/live").json()["cases"]
    assert after == before + 1


def test_a_model_with_prices_of_errors_shows_what_its_label_is_expected_to_cost(open_page, service):
    X, y = mixed_cases()
    for name, errors in {"money": [[0, 500], [80, 0]], "empty": [[0, 0.001], [0.001, 0]]}.items():
        dear = Prices(units=PRICES.units, price={"age": 1, "smokes": 1, "country": 2, "panel": 30})
        prices = PRICES if name == "money" else dear
        clf = EMSCOClassifier(prices, errors=errors, random_state=0).fit(X, y)
        clf.save(service.models / "new")
        (service.models / "new").rename(service.models / f"{name}.emsco")
        service.wait_until(lambda name=name: httpx2.get(f"{service.url}/models/{name}").status_code == 200 or None)
    page = open_page("/?model=money")
    expect(page.locator("#form button.main")).to_be_visible()
    while page.locator("#form").is_visible():
        asked = page.locator("#question-h").text_content()
        for box in page.locator("#form input[data-missing]").all():
            box.check()
        page.locator("#form button.main").click()
        expect(page.locator("#question-h")).not_to_have_text(asked)
    expect(page.locator(".verdict-card")).to_contain_text("Errors are expected to cost")
    expect(page.locator(".verdict-card")).not_to_contain_text("Confidence")
    expect(page.locator("#path")).to_contain_text("expected price of errors")
    page = open_page("/?model=empty")
    heading(page, "Decision")
    expect(page.locator("#question-lead")).to_have_text("This model buys nothing: every case gets this answer.")


def test_a_long_name_with_a_long_value_stays_readable_and_an_unseen_category_is_asked_back(open_page, service):
    rng = np.random.default_rng(0)
    name, value = "satisfaction with the bank; asked in writing, in German", "fairly satisfied, and without any remarks"
    X = pd.DataFrame({"city": rng.choice(list("ABCDEFGH"), 400), name: rng.choice([value, "not at all"], 400)})
    y = (X["city"] > "D") ^ (X[name] == value) ^ (rng.random(400) < 0.1)
    MultiStageClassifier([["city"], [name]], threshold=0.99).fit(X, y).save(service.models / "new")
    (service.models / "new").rename(service.models / "long.emsco")
    service.wait_until(lambda: httpx2.get(f"{service.url}/models/long").status_code == 200 or None)
    page = open_page("/?model=long", viewport=PHONE)
    heading(page, "Stage 1 of 2: city")
    hint = page.locator("#field-0-hint")
    expect(hint).to_have_text("Training had A, B, C, D, E and 3 others.")
    page.fill("#field-0", "a")
    expect(hint).to_have_text("Is that right? Training had A, B, C, D, E and 3 others.")
    page.fill("#field-0", "H")
    expect(hint).to_have_text("Training had A, B, C, D, E and 3 others.")
    page.fill("#field-0", "X")
    page.click("button.main")
    heading(page, f"Stage 2 of 2: {name}")
    expect(page.locator("#unseen")).to_have_text("Training did not have the value given for city. Is it right?")
    widths = page.locator(".choices label").evaluate_all("all => all.map((one) => one.clientWidth)")
    assert min(widths) > 250  # each choice has a line of its own
    page.check(f"[name=field-0][value='{value}']")
    page.click("button.main")
    expect(page.locator("#decision")).to_be_visible(timeout=30_000)
    assert page.locator("#given dt >> nth=1").evaluate("one => one.clientHeight") < 120
    page.click("#copy")
    expect(page.locator("#text")).to_contain_text("Training did not have the value given for city.")
