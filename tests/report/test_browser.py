"""The page in a real browser: it draws, picks and filters, and asks the network for nothing."""

import os
import re
import shutil

import numpy as np
import pandas as pd
from playwright.sync_api import expect, sync_playwright  # waits by expect: the page's policy forbids eval
import pytest

from emsco import Evolution, MultiStageClassifier, Prices
from emsco.report.by_class import class_tables
from emsco.report.html import render_page, write_report
from emsco.report.learning import learning_record
from emsco.report.outlook import outlook_record, outlook_words
from emsco.report.summary import summarise
from tests.classifiers import fixed, routed
from tests.report.test_html import HOSTILE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


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
def report(fitted, evaluation, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(fitted, path, evaluation=evaluation, notes={"data": "heart"})
    return path.as_uri()


@pytest.fixture(scope="module")
def default_report(by_default, held_out, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(by_default, path, evaluation=by_default.evaluate(*held_out), notes={"data": "heart"})
    return path.as_uri()


@pytest.fixture
def open_page(browser):
    """Open pages; at the end nothing may have gone wrong in them, and nothing been asked from elsewhere."""
    contexts, troubles = [], []

    def open_(address, **settings):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else troubles.append(r.url))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert troubles == []


def numbers(text):
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_the_headline_is_that_of_the_held_out_rows(open_page, report, fitted, evaluation):
    page = open_page(report)
    result = evaluation.points[fitted.point_]
    coverage, accuracy, cost, worst = page.locator(".tile").all_inner_texts()
    assert f"{100 * result.coverage:.1f}\u00a0%" in coverage
    assert f"{100 * result.accuracy:.1f}\u00a0%" in accuracy
    assert f"{sum(result.right)} of {sum(result.answered)} labels correct" in accuracy
    assert numbers(cost)[0] == round(result.mean_cost, 2)
    assert "per case" in cost
    assert f"{100 * result.worst_recall:.1f}\u00a0%" in worst
    assert evaluation.base_rate[1:] in page.inner_text("#base-rate")
    assert "held-out rows" in page.inner_text("#basis")
    assert page.locator("#scatter .point").count() == len(fitted.front_)


def test_without_an_evaluation_it_says_that_figures_are_optimistic(open_page, fitted, tmp_path):
    write_report(fitted, tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    assert "optimistic" in page.inner_text("#basis.warning")
    assert page.is_hidden("#results")


@pytest.mark.parametrize("validation", [5, 0.3])
def test_rows_that_judged_are_called_by_their_name(validation, open_page, fitted, held_out, tmp_path):
    clf = fixed(search=fitted.search, max_stages=2, validation=validation, random_state=0).fit(*held_out)
    word, other = ("out-of-fold", "validation") if validation == 5 else ("validation", "out-of-fold")
    for evaluation in (None, clf.evaluate(*held_out)):
        write_report(clf, tmp_path / "report.html", evaluation=evaluation)
        page = open_page((tmp_path / "report.html").as_uri())
        page.click("#all")
        shown = page.inner_text("body")
        assert f"{word} row" in page.inner_text("#scatter-note")
        assert page.locator("#picked th[scope=col]").first.inner_text() == word
        assert page.inner_text("#learning") == " ".join(learning_record(clf.deployed_)["in_words"])
        assert f"{other} row" not in shown
        assert f"{word} rows" in page.inner_text("#basis" if evaluation is None else "#points")
        how = page.inner_text("#how")
        assert how.startswith("Stages: logistic regression; numbers are ")
        assert how.endswith("Labels: a label needs 75\u00a0% confidence; the others get none.")


def stage_names(page):
    return [card.splitlines() for card in page.locator(".stage .chips").all_inner_texts()]


def test_a_click_picks_a_point_and_shows_its_design(open_page, report, fitted):
    page = open_page(report)
    front = fitted.front_
    assert stage_names(page) == [list(stage.features) for stage in fitted.stages_]
    other = len(front) - 1
    page.locator(f'.point[data-point="{other}"]').click()
    names = np.array(front.feature_names)
    assert stage_names(page) == [names[front.designs[other] == j].tolist() for j in range(front.n_stages[other])]
    assert page.evaluate("location.hash") == f"#point={other}"
    assert f"clf.use({other})" in page.inner_text("#picked")
    assert f"emsco use model.emsco {other}" in page.inner_text("#picked")


def test_the_counts_of_the_picked_design_are_the_evaluations(open_page, report, evaluation):
    page = open_page(f"{report}#point=1")
    result = evaluation.points[1]
    flows = [numbers(text) for text in page.locator(".stage .who").all_inner_texts()]
    reached = [99 - sum(result.answered[:j]) for j in range(len(result.answered))]
    onward = [*reached[1:], result.n_rejected]
    wrong = np.subtract(result.answered, result.right).tolist()
    assert flows == [list(row) for row in zip(reached, result.right, wrong, onward, strict=True)]
    assert numbers(page.inner_text(".end"))[:2] == [result.n_rejected, 99]
    assert class_counts(page) == [list(row) for row in result.confusion]


def class_counts(page, table=0):
    """The counts by label and without one, of the rows of a table of classes."""
    rows = page.locator(".confusion").nth(table).locator("tbody tr").all()
    cells = [row.locator("td").all_inner_texts()[3:] for row in rows]
    return [[int(cell.split()[0].replace(",", "")) for cell in row] for row in cells]


def test_a_link_opens_its_point_and_nonsense_does_no_harm(open_page, report, fitted):
    assert open_page(f"{report}#point=2").inner_text("#design-h").startswith("Point 2,")
    for wrong in ("#point=9999", "#point=x", "#frontier"):
        assert open_page(report + wrong).inner_text("#design-h").startswith(f"Point {fitted.point_},")
    page = open_page(report)
    page.evaluate("location.hash = '#point=1'")
    expect(page.locator("#design-h")).to_have_text("Point 1, stage by stage")


def test_arrow_keys_walk_the_points_by_cost(open_page, report, fitted):
    page = open_page(report)
    order = np.lexsort([np.arange(len(fitted.front_)), fitted.front_.mean_cost]).tolist()
    page.locator(".point.picked").focus()
    page.keyboard.press("Home")
    assert page.evaluate("location.hash") == f"#point={order[0]}"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("location.hash") == f"#point={order[1]}"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # there is no further one
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("location.hash") == f"#point={order[-2]}"
    assert page.evaluate("document.activeElement.getAttribute('aria-checked')") == "true"
    assert page.is_visible("#tip")
    assert f"Point {order[-2]}" in page.inner_text("#tip")


def test_limits_hide_points(open_page, report, fitted):
    page = open_page(report)
    front = fitted.front_
    page.locator("#limit-accuracy").fill("100")
    limit = front.accuracy.min() + (front.accuracy.max() - front.accuracy.min()) / 2
    within = np.flatnonzero(front.accuracy >= limit)
    shown = {int(i) for i in page.locator(".point:visible").evaluate_all("marks => marks.map(m => m.dataset.point)")}
    assert 0 < within.size < len(front)
    assert shown - {fitted.point_} == set(within.tolist()) - {fitted.point_}
    assert f"{within.size} of {len(front)} points" in page.inner_text("#left")
    page.click("#fittest")
    assert page.evaluate("location.hash") in (f"#point={within[0]}", "")
    assert page.inner_text("#picked h3").startswith(f"Point {within[0]}")
    page.click("text=Reset")
    expect(page.locator(".point:not([hidden])")).to_have_count(len(front))


def test_the_table_sorts_and_shows_all(open_page, report, fitted):
    page = open_page(report)
    front = fitted.front_
    assert page.is_hidden("#points")
    assert page.inner_text("#all") == f"Show all {len(front)} points as a table"
    page.click("#all")
    assert page.locator("#points tbody tr").count() == len(front)
    page.locator("#points thead button", has_text="Mean cost").first.click()
    picked = [int(text) for text in page.locator("#points tbody th").all_inner_texts()]
    assert front.mean_cost[picked].tolist() == sorted(front.mean_cost)
    assert page.locator('#points th[aria-sort="ascending"]').inner_text().startswith("Mean cost")
    page.keyboard.press("Enter")  # the heading kept the focus
    assert page.locator('#points th[aria-sort="descending"]').count() == 1
    page.locator("#points tbody button").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == f"#point={front.mean_cost.argmax()}"


def test_the_table_has_intervals_and_other_objectives(open_page, fitted, evaluation, tmp_path):
    summary = summarise(fitted.deployed_, evaluation=evaluation)
    summary["extra"], summary["objectives"] = [HOSTILE], ["cost", "accuracy", HOSTILE]
    for i, point in enumerate(summary["points"]):
        point["validation"]["extra"], point["test"]["extra"] = [i / 8], [i / 4 + 0.0625]
    path = tmp_path / "report.html"
    path.write_text(render_page(summary), encoding="utf-8")
    page = open_page(path.as_uri())
    page.click("#all")
    assert page.locator("#objectives").text_content() == f"cost, accuracy and {HOSTILE}"
    cells = page.locator("#points tbody tr").nth(1).locator("td").all_inner_texts()
    low, high = (f"{100 * end[1]:.1f}\xa0%" for end in fitted.front_.interval("coverage"))
    assert cells[1] == f"{100 * fitted.front_.coverage[1]:.1f}\xa0%\n{low}\u2013{high}"
    assert cells[4] == "0.125"
    assert page.locator("#points thead th", has_text="held-out").count() == 1
    assert HOSTILE in page.locator("#picked").text_content()
    shown = page.locator("#picked tr", has_text=HOSTILE).locator("td").all_inner_texts()
    i = fitted.point_
    assert list(map(float, shown)) == pytest.approx([i / 8, i / 4 + 0.0625], rel=1e-3)


def background(page):
    return sum(numbers(page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3])


def test_dark_mode_follows_the_system_and_the_button(open_page, report):
    page = open_page(report, color_scheme="dark")
    assert background(page) < 150
    page.click("#theme")
    assert background(page) > 600
    page.emulate_media(color_scheme="light")
    page.click("#theme")
    assert background(page) < 150
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink')") == "#1a1f26"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1000, 1440])
def test_no_screen_scrolls_sideways_and_nothing_is_cut_off(open_page, default_report, width, scheme):
    page = open_page(default_report, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.click("#all")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.locator("main *, header *").evaluate_all(
        """all => all.filter((e) => e.offsetWidth && !e.closest(".scroll, svg, #tip, code")).filter((e) => {
          const { left, right } = e.getBoundingClientRect();
          const box = e.parentElement.closest("section, .tile, .panel, .stage, header, main").getBoundingClientRect();
          return right > Math.min(innerWidth, box.right) + 1 || left < Math.max(0, box.left) - 1;
        }).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert outside == []


def test_a_table_that_is_wider_than_its_box_says_so(open_page, default_report):
    page = open_page(default_report, viewport={"width": 390, "height": 800})
    for box in page.locator(".scroll:visible").all():
        wider = box.evaluate("e => e.scrollWidth > e.clientWidth + 1")
        hint = box.locator("xpath=following-sibling::p[1]")
        assert hint.is_visible() == wider
        assert hint.inner_text() == "Scroll the table sideways for more \u2192"
    assert page.locator(".hint:visible").count() >= 1


def test_a_window_that_changes_redraws_its_charts(open_page, report):
    page = open_page(report)
    wide = page.locator("#scatter svg").get_attribute("width")
    page.set_viewport_size({"width": 500, "height": 800})
    expect(page.locator("#scatter svg")).not_to_have_attribute("width", wide)
    assert float(page.locator("#scatter svg").get_attribute("width")) < 500
    assert page.locator(".point.picked").count() == 1


def test_a_given_design_has_a_report_without_a_frontier(open_page, held_out, tmp_path):
    X, y = held_out
    clf = MultiStageClassifier([["age"], ["sex", "time"]], {"age": 1, "sex": 1, "time": 5}, threshold=0.8)
    X = X[["age", "sex", "time"]]
    clf.fit(X, y)
    for evaluation in (None, clf.evaluate(X, y)):
        write_report(clf, tmp_path / "report.html", evaluation=evaluation)
        page = open_page((tmp_path / "report.html").as_uri())
        assert page.is_hidden("#frontier")
        assert page.is_visible("#results") == (evaluation is not None)
        assert stage_names(page) == [["age"], ["sex", "time"]]


def test_what_is_never_bought_is_said(open_page, held_out, tmp_path):
    X, y = held_out
    clf = fixed(search=Evolution(population_size=20, max_generations=3), removal=True, random_state=0)
    clf.fit(X[["age", "sex", "time"]], y).use(int(clf.front_.mean_cost.argmin()))
    write_report(clf, tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    (bought,) = clf.stages_[0].features
    never = ", ".join(name for name in ("age", "sex", "time") if name != bought)
    assert "buys 1 of its 3 features in one stage" in page.inner_text("#headline")
    assert f"Never bought: {never}." in page.inner_text("#design-lead")
    page.click("#all")
    assert f"{bought}; never {never}" in page.inner_text("#points")
    assert page.locator("#price-list tbody td", has_text="never").count() == 2
    assert "blank: never bought" in page.inner_text("#matrix-key")


def test_hostile_names_are_shown_as_they_are(open_page, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=[HOSTILE, "age"])
    y = np.where(X["age"] > 0, "<b>ill</b>", "well")
    clf = MultiStageClassifier([["age"], [HOSTILE]], threshold=0.99).fit(X, y)
    write_report(clf, tmp_path / "report.html", evaluation=clf.evaluate(X, y), notes={"<i>": HOSTILE})
    page = open_page((tmp_path / "report.html").as_uri())
    assert page.locator(".chips li").nth(1).text_content() == HOSTILE
    assert page.locator("#notes dd").text_content() == HOSTILE
    assert page.locator(".confusion tbody th").first.text_content() == "<b>ill</b>"


def test_points_without_labels_and_certificates_are_drawn(open_page, fitted, tmp_path):
    summary = summarise(fitted.deployed_)
    summary["points"][1]["validation"].update(accuracy=None, coverage=0.0)
    summary["search"]["certificate"] = {
        "n_designs": 10**21, "n_walked": 1234, "n_ruled_out": 10**21 - 1234, "seconds": 2.5, "proven": False,
    }  # fmt: skip
    (tmp_path / "report.html").write_text(render_page(summary), encoding="utf-8")
    page = open_page((tmp_path / "report.html").as_uri() + "#point=1")
    assert page.locator('.point[data-point="1"] .silent').count() == 1
    assert "undefined" in page.inner_text("#scatter-note")
    assert "\u2013" in page.inner_text("#picked")
    assert "1.00 \u00d7 10^21 designs. 1,234 were evaluated" in page.inner_text("#search-words")
    assert "not proven" in page.inner_text("#search-words")


def test_the_price_model_is_said_and_waiting_longer_than_for_everything_is_more(open_page, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["smear", "culture"])
    prices = Prices(price={"smear": 1, "culture": 3}, overhead=0.5, parallel=True)
    clf = MultiStageClassifier([["smear"], ["culture"]], prices, threshold=1.0).fit(X, X["culture"] > 0)
    write_report(clf, tmp_path / "report.html", evaluation=clf.evaluate(X, X["culture"] > 0))
    page = open_page((tmp_path / "report.html").as_uri())
    lead = page.text_content("#prices-lead")
    assert lead.startswith("A stage takes as long as its slowest purchase, plus an overhead of 0.5. Everything")
    assert "43\u00a0% more than buying everything (3.50)" in page.text_content("#tiles")


def test_the_matrix_picks_and_frames_a_point(open_page, report, fitted):
    page = open_page(report)
    cheapest, dearest = fitted.front_.mean_cost.argmin(), fitted.front_.mean_cost.argmax()
    for point, share in ((cheapest, 0.001), (dearest, 0.999)):
        area = page.locator("#matrix .hit").bounding_box()
        page.locator("#matrix .hit").click(position={"x": area["width"] * share, "y": 5})
        assert page.evaluate("location.hash") == f"#point={point}"
        frame = page.locator("#matrix .column").bounding_box()
        middle = frame["x"] + frame["width"] / 2 - area["x"]
        assert abs(middle / area["width"] - share) < 1 / len(fitted.front_)
        assert f"point {point}: bought at stage" in page.inner_text("#tip")


def test_the_shortlist_is_first_and_picks_a_point(open_page, report, fitted):
    page = open_page(report)
    picks = fitted.front_.shortlist(in_use=fitted.point_)
    rows = page.locator("#picks tbody tr").all_inner_texts()
    assert len(rows) == len(picks)
    for text, pick in zip(rows, picks, strict=True):
        assert text.split()[0] == str(pick.point)
        assert pick.reason in text.replace("\u00a0", " ")
        assert ("in use" in text.split("\n")[0]) == (pick.point == fitted.point_)
    other = next(pick for pick in picks if pick.point != fitted.point_)
    page.locator("#picks button", has_text=re.compile(f"^{other.point}$")).click()
    assert page.evaluate("location.hash") == f"#point={other.point}"
    assert page.evaluate("document.activeElement.textContent") == str(other.point)
    assert page.locator("#picks tr.picked button").inner_text() == str(other.point)
    assert other.reason in page.inner_text("#picked").replace("\u00a0", " ")


def test_points_of_the_shortlist_stand_out(open_page, report, fitted):
    page = open_page(report)
    listed = {str(point) for point in fitted.front_.shortlist(in_use=fitted.point_).points}
    marks = page.locator("#scatter .point")
    large = marks.evaluate_all("all => all.filter((m) => m.matches('.listed')).map((m) => m.dataset.point)")
    assert set(large) == listed
    order = marks.evaluate_all("all => all.map((m) => m.matches('.listed, .picked'))")
    assert order == sorted(order)  # the others are below
    sizes = {
        kind: page.locator(f"#scatter .point{kind} .dot").first.evaluate(
            "dot => [+dot.getAttribute('r'), +getComputedStyle(dot).fillOpacity]"
        )
        for kind in (".listed", ":not(.listed):not(.picked)")
    }
    (r_listed, opaque), (r_other, faint) = sizes.values()
    assert r_listed > r_other
    assert (opaque, faint < 0.8) == (1, True)


def test_the_axes_fit_the_points_within_the_limits(open_page, report):
    page = open_page(report)
    ticks = page.locator("#scatter .tick").all_text_contents()
    page.locator("#limit-cost").fill("40")
    assert page.locator("#scatter .tick").all_text_contents() != ticks
    page.click("text=Reset")
    expect(page.locator("#scatter .tick").first).to_have_text(ticks[0])


def test_classes_are_told_on_held_out_and_on_judged_rows(open_page, report, fitted, evaluation):
    page = open_page(f"{report}#point=2")
    assert page.inner_text("#classes-h") == "Point 2, class by class"
    assert class_counts(page, 0) == [list(row) for row in evaluation.points[2].confusion]
    assert class_counts(page, 1) == fitted.front_.confusion[2].tolist()
    assert page.locator("#by-class .base").all_inner_texts()[0] == evaluation.base_rate
    recall = page.locator(".confusion").nth(1).locator("td.recall b").all_inner_texts()
    assert recall == [f"{100 * share:.1f}\u00a0%" for share in fitted.front_.recall[2]]


def test_a_class_that_is_never_found_is_a_problem_in_words_and_never_green(open_page, fitted, evaluation, tmp_path):
    counts = [[[67, 0, 0], [32, 0, 0]], [[100, 10, 26], [0, 60, 4]]]
    summary = summarise(fitted.deployed_, evaluation=evaluation)
    point = summary["points"][summary["in_use"]]
    point["test"] |= {**class_tables(counts[0]), "worst_recall": 0.0, "accuracy_interval": [0.57, 0.77]}
    point["validation"] |= {**class_tables(counts[1]), "worst_recall": 100 / 136}
    (tmp_path / "report.html").write_text(render_page(summary), encoding="utf-8")
    page = open_page((tmp_path / "report.html").as_uri())
    lost = page.locator(".confusion td.lost")
    assert [" ".join(text.split()) for text in lost.all_inner_texts()] == ["0 none"]
    assert page.locator(".confusion").nth(0).locator("td.right").all_inner_texts() == ["67"]
    assert page.locator(".confusion").nth(1).locator("td.right").all_inner_texts() == ["100", "60"]
    assert "never found" in page.locator(".confusion").nth(0).locator("td.recall").nth(1).inner_text()
    assert "never given" in page.locator(".confusion").nth(0).inner_text()
    assert "none of its cases is found" in page.locator(".tile").nth(3).inner_text()
    colour = "e => getComputedStyle(e).backgroundColor"
    assert lost.evaluate(colour) != page.locator(".confusion td.right").first.evaluate(colour)
    assert "the rows do not show that the classifier is better" in page.inner_text("#base-rate.warning")


def test_the_last_card_says_what_becomes_of_the_others(open_page, default_report, by_default):
    thresholds, n_stages = by_default.front_.thresholds, by_default.front_.n_stages
    page = open_page(default_report)
    page.click("#all")
    for wanted, words in (((thresholds[:, 1] == 0), "Nobody is left"), ((thresholds[:, 1] > 0.9), "Inconclusive")):
        point = int(np.flatnonzero(wanted & (n_stages > 1))[0])
        page.get_by_role("button", name=f"Select point {point}", exact=True).last.click()
        expect(page.locator("#design-h")).to_contain_text(f"Point {point}")
        expect(page.locator("#flow .end")).to_contain_text(words)


def test_a_figure_without_an_interval_shows_none(open_page, fitted, held_out, tmp_path):
    clf = MultiStageClassifier([["age"]], {"age": 3}, threshold=0.0).fit(
        *(part[:60] for part in _only(held_out, "age"))
    )
    X, y = _only(held_out, "age")
    write_report(clf, tmp_path / "report.html", evaluation=clf.evaluate(X[60:], y[60:]))
    page = open_page((tmp_path / "report.html").as_uri())
    coverage, accuracy, cost, _ = page.locator(".tile").all_inner_texts()
    assert "confidence interval" in accuracy
    assert "confidence interval" not in coverage + cost
    assert page.inner_text("#headline") == "A classifier that buys its 1 feature in one stage."


def _only(rows, column):
    X, y = rows
    return X[[column]], y


def test_what_to_expect_on_new_rows_is_beside_what_was_found(open_page, default_report, by_default, held_out):
    page = open_page(default_report)
    record = outlook_record(by_default.deployed_, by_default.evaluate(*held_out))
    assert page.inner_text("#outlook-h").startswith(f"Point {by_default.point_}: what to expect")
    accuracy = page.locator("#outlook-table tbody tr").first.inner_text()
    low, high = (100 * end for end in record["accuracy"]["interval_95"])
    assert f"{100 * record['accuracy']['value']:.1f}\u00a0%" in accuracy
    assert f"{low:.1f} to {high:.1f}\u00a0%" in accuracy
    low, high = (100 * end for end in record["new_rows"]["accuracy"]["interval_95"])
    assert f"{low:.1f} to {high:.1f}\u00a0%" in accuracy
    assert ("as expected" in accuracy) == record["new_rows"]["accuracy"]["within"]
    assert outlook_words(record)[-1] in page.inner_text("#outlook-words")


def test_without_an_outlook_there_is_no_section_of_it(open_page, report):
    assert open_page(report).is_hidden("#outlook")


def test_a_budget_names_the_point_that_at_cost_would(open_page, report, fitted, evaluation):
    page = open_page(report)
    front = fitted.front_
    for budget in (front.mean_cost.min() - 1, *np.quantile(front.mean_cost, [0.1, 0.5, 0.9])):
        page.fill("#budget-input", f"{budget:.6f}")
        said = page.inner_text("#budget-found")
        wanted = evaluation.at_cost([float(f"{budget:.6f}")])["point"][0]
        if pd.isna(wanted):
            assert said.startswith("No point is so cheap")
            continue
        found = int(re.match(r"Point (\d+)", said)[1])
        figure = front.accuracy if front.coverage[wanted] >= 0.9 else front.coverage
        assert figure[found] == pytest.approx(figure[wanted], abs=1e-6)
        assert front.mean_cost[found] <= budget + 1e-6
        page.click("#budget-found button")
        assert page.evaluate("location.hash") == f"#point={found}"
    page.fill("#budget-input", "")
    assert "the points cost" in page.inner_text("#budget-found")


@pytest.fixture(scope="module")
def tree_report(tmp_path_factory):
    clf, X, y = routed()
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(clf, path, evaluation=clf.evaluate(X, y))
    return path.as_uri(), clf.point_


@pytest.mark.parametrize("width", [390, 1200])
def test_a_design_that_branches_is_drawn_as_a_tree(tree_report, open_page, width):
    address, point = tree_report
    page = open_page(address, viewport={"width": width, "height": 900})
    said = page.locator("#tree svg").get_attribute("aria-label")
    assert "if kind is a: w | v; if kind is b: x; if kind is anything else: u | z" in said
    texts = page.locator("#tree svg text").all_text_contents()
    assert {"kind is b", "76 of 240 cases", "76 cases pay 6", "Stage 2: x", "25 get no label and pay 12."} <= {*texts}
    assert page.locator("#flow li").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    boxes = [box.bounding_box() for box in page.locator("#tree svg g.buy rect").all()]
    assert len({round(box["x"]) for box in boxes}) == (1 if width == 390 else 3)  # below each other, or side by side
    page.goto(f"{address}#point=0")
    page.reload()
    assert page.locator("#tree svg").count() == 0
    assert page.locator("#flow li").count() > 0
    assert point > 0
