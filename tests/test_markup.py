from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
import pytest

from emsco.markup import Sheet, facts_sheet

WORDS = st.text(st.characters(codec="utf-8"), max_size=60)


def sheet(words="age | blood", **rest):
    return Sheet(("point", "cost", "buys"), (("0", "1.00", words), ("*11", "12.50", "sex")), left=(2,), **rest)


def test_numbers_are_right_aligned_and_words_left():
    assert sheet(notes=("Two.",)).to_text(80).splitlines() == [
        "point   cost  buys",
        "    0   1.00  age | blood",
        "  *11  12.50  sex",
        "Two.",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_lines_fit_and_long_words_go_below_or_wrap(width):
    text = sheet("blood pressure, " * 30).to_text(width)
    assert max(map(len, text.splitlines())) <= width
    assert "..." in text
    assert ("buys" in text) == (width >= 80)


def test_words_before_figures_give_way():
    lines = Sheet(("on 9 rows", "cost"), (("buy everything " * 9, "1.00"),), left=(0,)).to_text(40).splitlines()
    assert max(map(len, lines)) == 40
    assert lines[0].endswith("  cost")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.data = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.data.append(data)


def parsed(html):
    tags = Tags()
    tags.feed(html)
    return tags


@given(WORDS)
def test_html_holds_nothing_but_a_table_whatever_the_words(words):
    tags = parsed(Sheet(("a", words), (("1", words), ("2", "x")), left=(1,), notes=(words,)).to_html(words))
    assert set(tags.tags) <= {"div", "p", "b", "br", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name for name, _ in tags.attributes} == {"style"}


def test_html_is_escaped_marked_and_has_no_colours():
    html = sheet("<script>alert(1)</script>", marked=(1,)).to_html()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.count('<tr style="font-weight:bold">') == 1
    styles = " ".join(value for _, value in parsed(html).attributes)
    assert "#" not in styles
    assert "color" not in styles.lower().replace("currentcolor", "")


def test_facts_have_no_head():
    assert "<thead>" not in facts_sheet([("price", "1")]).to_html()
