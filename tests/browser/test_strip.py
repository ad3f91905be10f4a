"""The strip of bits: adding, querying and deleting show what they say."""

import re

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait


class Strip:
    def __init__(self, browser):
        self.browser = browser

    def press(self, action):
        self.browser.find(f"#petal-strip [data-action={action}]").click()
        return self.message

    def type(self, key):
        field = self.browser.find("#petal-key")
        field.clear()
        field.send_keys(key)

    def select(self, name, value):
        Select(self.browser.find(f"#petal-{name}")).select_by_value(str(value))

    @property
    def message(self):
        return self.browser.find("#petal-strip .petal-message").text

    @property
    def kind(self):
        return self.browser.find("#petal-strip .petal-message").get_attribute("data-kind")

    @property
    def cells(self):
        return [int(cell.text) for cell in self.browser.find_all("#petal-strip .petal-cell")]

    @property
    def outlined(self):
        cells = self.browser.find_all("#petal-strip .petal-cell")
        return [at for at, cell in enumerate(cells) if "petal-probe" in cell.get_attribute("class")]

    @property
    def keys(self):
        return [key.text for key in self.browser.find_all("#petal-strip .petal-member")]


@pytest.fixture
def strip(browser, book):
    return opened(browser, book)


def opened(browser, book, page="how-it-works.html"):
    browser.open(book + page)
    WebDriverWait(browser.driver, 30).until(lambda _: browser.find_all("#petal-strip .petal-cell"))
    return Strip(browser)


def test_adding_sets_the_bits_of_a_key(strip):
    assert not any(strip.cells) and len(strip.cells) == 64
    strip.type("a key")
    strip.press("add")
    assert [at for at, bit in enumerate(strip.cells) if bit] == strip.outlined
    assert 1 <= len(strip.outlined) <= 3 and strip.keys == ["a key"]
    assert all(str(at) in strip.message for at in strip.outlined)
    assert "present" in strip.press("query") and strip.kind == "yes"
    strip.type("another key")
    assert "certainly not in the set" in strip.press("query")


def test_enter_adds_the_key(strip):
    strip.type("word" + Keys.ENTER)
    assert strip.keys == ["word"] and any(strip.cells)


def test_false_positive_is_found(strip):
    strip.press("fill")
    strip.press("fill")
    assert strip.press("falsePositive").startswith("False positive") and strip.kind == "wrong"
    queried = strip.browser.find("#petal-key").get_property("value")
    assert queried not in strip.keys
    assert all(strip.cells[at] for at in strip.outlined) and strip.outlined


def test_deletion_breaks_another_key_and_counters_repair_it(strip):
    strip.press("fill")
    strip.press("fill")
    before = strip.keys
    assert "is lost" in strip.press("broken") and strip.kind == "wrong"
    lost = strip.browser.find("#petal-key").get_property("value")
    assert lost in strip.keys and len(strip.keys) == len(before) - 1
    assert strip.press("query").startswith("False negative")

    strip.select("mode", "counters")
    assert sum(strip.cells) > len([cell for cell in strip.cells if cell])
    assert "still present" in strip.press("broken") and strip.kind == "yes"
    for key in strip.keys:
        strip.type(key)
        assert strip.press("query") and strip.kind == "yes", key


def test_removing_all_keys_empties_the_counters(strip):
    strip.select("mode", "counters")
    strip.press("fill")
    for key in strip.keys:
        strip.type(key)
        strip.press("remove")
    assert not any(strip.cells) and not strip.keys


def test_key_that_was_not_added_is_not_removed(strip):
    strip.press("fill")
    cells = strip.cells
    strip.type("missing")
    assert "was not added" in strip.press("remove")
    assert strip.cells == cells


@pytest.mark.parametrize("bits", [32, 128])
def test_size_and_probes_can_be_chosen(strip, bits):
    strip.press("fill")
    strip.select("bits", bits)
    strip.select("probes", 1)
    assert len(strip.cells) == bits and 1 <= sum(strip.cells) <= 5
    assert f"m = {bits}, k = 1" in strip.browser.find("#petal-strip .petal-status").text


def test_chinese_page_has_a_chinese_strip(browser, book):
    strip = opened(browser, book, "zh/how-it-works.html")
    messages = [strip.press(action) for action in ("add", "fill", "fill", "falsePositive", "broken", "query")]
    strip.select("mode", "counters")
    messages += [strip.press(action) for action in ("broken", "remove", "query", "reset")]
    assert messages[3].startswith("误判") and "丢了" in messages[4] and messages[5].startswith("漏判"), messages
    assert not re.search("[A-Z]", browser.find("#petal-strip").text)
    browser.screenshot("strip-chinese")


@pytest.mark.parametrize("width", [380, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_strip_fits_its_window(browser, book, width, dark):
    browser.view(width=width, height=1000, dark=dark)
    strip = opened(browser, book)
    strip.press("fill")
    strip.press("fill")
    strip.press("falsePositive")
    assert browser.overflow() <= 0
    browser.screenshot(f"strip-{width}-{'dark' if dark else 'light'}")
