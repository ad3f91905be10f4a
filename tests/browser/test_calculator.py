"""The calculator equals the library, and the lines that it prints make the filter that it shows.

The library's numbers are those of the program, `PETAL_PROGRAM` or the debug build.
"""

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from conftest import BOOK, ROOT

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PETAL = Path(os.environ.get("PETAL_PROGRAM", TARGET / "debug/petal"))
PYTHON = ROOT / "target/python/bin/python"
TYPES = (
    "bloom", "classic", "counting", "counting-classic", "quotient", "vector-quotient", "scalable", "windowed", "static",
    "static-fuse",
)  # fmt: skip


@pytest.fixture
def calculator(browser, book):
    """Returns a function that fills in the fields and returns the plan, or the message.

    It does not set the address: Chromium ignores addresses that a script sets more than 200 times in 10 seconds.
    """
    fill = """
        for (const [name, value] of Object.entries(arguments[0])) document.getElementById(`petal-${name}`).value = value;
        const root = document.getElementById('petal-calculator');
        delete root.dataset.state;
        document.getElementById('petal-type').dispatchEvent(new Event('input'));
        return [root.dataset.state, root.dataset.plan, root.querySelector('.petal-message').textContent];
    """

    def plan(type="bloom", n="", p="", m="", k="", unit="MiB"):
        fields = {"type": type, "capacity": n, "fpr": p, "memory": m, "probes": k, "unit": unit}
        state, found, message = browser.run(fill, fields)
        return message if state == "error" else json.loads(found)

    browser.open(book + "calculator.html")
    loaded = browser.find("#petal-calculator")
    WebDriverWait(browser.driver, 30).until(lambda _: loaded.get_attribute("data-state"))
    return plan


def program(*args):
    """Returns the output of the program."""
    done = subprocess.run([PETAL, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{args}: {done.stderr}"
    return done.stdout


def random_fields(rng):
    """Returns two or three random fields that have a solution."""
    filter_type = rng.choice(("bloom", "classic", rng.choice(TYPES)))
    keys = round(10 ** rng.uniform(2, 10))
    lowest = 6 if filter_type == "vector-quotient" else 7
    rate = float(f"{10 ** -rng.uniform(0.5, lowest):.3g}")
    probes = rng.randint(3, 8)
    memory = max(1, round(keys * rng.uniform(5, 25) / 8 / 1024))
    fields = {"n": keys, "p": rate, "m": memory, "k": probes}
    pairs = [("n", "p")]
    if filter_type in ("bloom", "classic"):
        pairs += [("n", "m"), ("p", "m"), ("m", "k"), ("n", "k"), ("n", "p", "k"), ("n", "m", "k"), ("p", "m", "k")]
    return filter_type, {name: fields[name] for name in rng.choice(pairs)}


@pytest.mark.timeout(900)
def test_numbers_equal_the_library(calculator):
    rng = random.Random(20)
    for case in range(200):
        filter_type, fields = random_fields(rng)
        flags = {"n": "-n", "p": "-p", "m": "--size", "k": "-k"}
        args = [text for name, value in fields.items() for text in (flags[name], f"{value}{'K' * (name == 'm')}")]
        # Without a type the program plans bloom and classic.
        args += [] if filter_type in ("bloom", "classic") else ["--type", filter_type]
        plans = json.loads(program("plan", "--json", *args))["plans"]
        expected = next(plan for plan in plans if plan["type"] == filter_type)
        found = calculator(type=filter_type, unit="KiB", **fields)
        where = f"case {case}: {filter_type} {fields}: {found}, expected {expected}"
        assert isinstance(found, dict), where
        for name in ("capacity", "size_bytes", "bits"):
            assert found[name] == expected[name], f"{name}: {where}"
        assert found["probes"] == expected["probes"], where
        for name in ("fpr", "fpr_at_double_capacity", "bits_per_key"):
            if expected[name] is not None and found[name] is not None:
                assert found[name] == pytest.approx(expected[name], rel=1e-9), f"{name}: {where}"


LINES = [(name, {"n": 5000, "p": "0.5%"}) for name in TYPES]
LINES += [(name, {"p": "1%", "m": 16}) for name in TYPES]
LINES += [(name, {"n": 5000, "m": 64}) for name in TYPES]
LINES += [(name, {"m": 16, "k": 5}) for name in ("bloom", "classic", "counting")]
LINES += [(name, {"n": 5000, "p": "1e-3", "k": 7}) for name in ("bloom", "classic", "counting-classic")]


@pytest.mark.parametrize(("filter_type", "fields"), LINES, ids=[f"{n}-{'-'.join(f)}" for n, f in LINES])
def test_printed_lines_make_the_filter(calculator, tmp_path, filter_type, fields):
    plan = calculator(type=filter_type, unit="KiB", **fields)
    keys = [f"https://example.org/{number}" for number in range(plan["capacity"])]
    (tmp_path / "keys.txt").write_text("".join(f"{key}\n" for key in keys))
    # Static filters depend on their keys, and their size is approximate; a small fuse filter may be smaller than planned.
    near = pytest.approx(plan["size_bytes"], rel={"static": 0.1, "static-fuse": 0.3}.get(filter_type, 0))

    shell = plan["lines"]["shell"]
    done = subprocess.run(shell.split(), executable=PETAL, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shell}: {done.stderr}"
    built = json.loads(program("info", "--json", str(tmp_path / f"{filter_type}.petal")))
    assert built["size_bytes"] == near, f"{shell}: {built}"
    # All lines were added, so nothing is above the plan.
    assert program("check", "--count", str(tmp_path / f"{filter_type}.petal"), str(tmp_path / "keys.txt")).split()[0] == str(len(keys))

    if PYTHON.exists():
        code = f"import petal\nkeys = open('keys.txt').read().split()\n{plan['lines']['python']}\nprint(filter.size_bytes)"
        done = subprocess.run([PYTHON, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and int(done.stdout) == near, f"{code}\n{done.stdout}{done.stderr}"


def test_address_restores_the_state(browser, book, calculator):
    browser.find("#petal-capacity").clear()
    browser.find("#petal-capacity").send_keys("2^20")
    browser.run("const t = document.getElementById('petal-type'); t.value = 'classic'; t.dispatchEvent(new Event('input'))")
    address = browser.driver.current_url
    shown = browser.find("#petal-calculator").get_attribute("data-plan")
    browser.open(address)
    WebDriverWait(browser.driver, 30).until(lambda _: browser.find("#petal-calculator").get_attribute("data-plan"))
    assert browser.find("#petal-calculator").get_attribute("data-plan") == shown
    plan = json.loads(shown)
    assert (plan["type"], plan["capacity"]) == ("classic", 1 << 20)

    browser.run("location.hash = 'n=1000&p=0.01'")
    capacity = "return JSON.parse(document.getElementById('petal-calculator').dataset.plan).capacity"
    WebDriverWait(browser.driver, 30).until(lambda _: browser.run(capacity) == 1000)


@pytest.mark.parametrize(
    ("written", "keys"), [("1e6", 10**6), ("5,000,000", 5 * 10**6), ("2^30", 1 << 30), ("1_000", 1000), ("7 000", 7000)]
)
def test_numbers_are_read(calculator, written, keys):
    assert calculator(n=written, p="1/100")["capacity"] == keys


def test_rates_are_read(calculator):
    for written in ("1%", "0.01", "1e-2", "1/100"):
        assert calculator(n=1000, p=written)["lines"]["shell"].endswith("-p 0.01 keys.txt")


def test_invalid_fields_have_a_message(browser, calculator):
    for fields in ({"n": "many", "p": "1%"}, {"n": 1000, "p": "100%"}, {"n": 1000}, {"p": "1%", "k": 3}, {"n": 1000, "p": "1e-19"}):
        assert "petal" in calculator(**fields) or len(calculator(**fields)) > 20
        assert not browser.find(".petal-figures").is_displayed()


@pytest.mark.parametrize("filter_type", TYPES)
def test_charts_are_drawn(browser, calculator, filter_type):
    calculator(type=filter_type, n=100000, p="0.1%")
    names = browser.run("return [...document.querySelectorAll('figure')].map(f => f.dataset.chart)")
    assert names == (["keys", "probes", "rates"] if filter_type in TYPES[:4] else ["keys", "rates"])
    drawn = """
        return [...document.querySelectorAll('.petal-chart canvas')].map(canvas => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return new Set(new Uint32Array(pixels.buffer)).size;
        })
    """
    assert all(colours > 20 for colours in browser.run(drawn))


@pytest.mark.parametrize("width", [380, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_calculator_fits_its_window(browser, calculator, width, dark):
    browser.view(width=width, height=2700, dark=dark)
    browser.open(browser.driver.current_url)
    calculator(type="classic", n="1e6", p="0.1%")
    assert browser.overflow() <= 0
    browser.screenshot(f"calculator-{width}-{'dark' if dark else 'light'}")


def test_every_field_has_a_label(browser, calculator):
    unlabelled = "return [...document.querySelectorAll('main input, main select')].filter(e => !e.labels.length && !e.ariaLabel).length"
    assert browser.run(unlabelled) == 0


def test_tables_of_the_page_are_computed(browser, calculator):
    """The tables about the textbook formula: each figure, to the digits that it is written with."""
    rows = [re.split(r"\s*\|\s*", line.strip("| \n")) for line in (ROOT / "docs/calculator.md").open() if line.startswith("|")]
    small = [row for row in rows if len(row) == 6 and row[0].isdigit()]
    blocked = [row for row in rows if len(row) == 5 and row[0][0].isdigit()]
    assert len(small) == 5 and len(blocked) == 6

    def value(written):
        return float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)

    def equals(written, computed):
        digits = len(re.sub(r"e.*|\D", "", written).lstrip("0"))
        assert value(written) == pytest.approx(computed, rel=6 * 10**-digits), f"{written} is {computed}"

    def ask(**request):
        return browser.run("return petal.ask(arguments[0])", request)

    for n, m, k, textbook, exact, factor in small:
        n, m, k = int(n), int(m), int(k)
        rate = ask(op="strip", bits=m, probes=k, keys=n, query="")["fpr"]
        by_formula = (1 - 2.718281828459045 ** (-k * n / m)) ** k
        equals(textbook, by_formula)
        equals(exact, rate)
        equals(factor, rate / by_formula)
    for target, bits, rate, factor, needed in blocked:
        curves = ask(op="curves", type="classic", capacity=10**6, fpr=value(target))
        limit = min(zip(curves["rates"]["fpr"], curves["rates"]["limit"]), key=lambda at: abs(at[0] / value(target) - 1))[1]
        size = limit / 0.6931471805599453
        equals(bits, size)
        plan = ask(op="plan", type="bloom", capacity=10**6, memory=size * 1e6 / 8, probes=min(16, round(limit)))
        equals(rate, plan["fpr"])
        equals(factor, plan["fpr"] / value(target))
        equals(needed, ask(op="plan", type="bloom", capacity=10**6, fpr=value(target))["bits_per_key"])


def test_calculator_works_from_a_file(browser):
    browser.open((BOOK / "calculator.html").as_uri())
    root = browser.find("#petal-calculator")
    WebDriverWait(browser.driver, 30).until(lambda _: root.get_attribute("data-state") == "done")


def test_sizes_of_other_types_on_the_page_are_computed(browser, calculator):
    text = " ".join((ROOT / "docs/calculator.md").read_text().split())
    for name, words in (
        ("classic", "textbook says {} bits"), ("quotient", "quotient filter takes {},"), ("static", "static filter about {} as planned"),
        ("scalable", "scalable filter {} if"), ("windowed", "windowed filter {},"), ("counting", "counting filter {}."),
    ):  # fmt: skip
        assert words.format(round(calculator(type=name, n="1e6", p="0.1%")["bits_per_key"], 1)) in text, name


def test_chinese_page_has_chinese_labels(browser, book):
    browser.open(book + "zh/calculator.html")
    root = browser.find("#petal-calculator")
    WebDriverWait(browser.driver, 30).until(lambda _: root.get_attribute("data-state") == "done")
    labels = browser.run("return [...document.querySelectorAll('main label, main figcaption')].map(e => e.innerText)")
    assert len(labels) == 8 and all(re.search("[\u4e00-\u9fff]", label) for label in labels)
    assert "missing" not in root.text and "undefined" not in root.text


@pytest.mark.parametrize("values", ["type=counting", "type=quotient", "type=vector-quotient", "type=scalable", "type=windowed",
                                    "type=static", "type=static-fuse", "m=10&unit=bytes", "n=1e6&m=1&unit=bytes&p=", "p=1e-18",
                                    "k=40", "n=1e6&m=10&unit=kB&p="])  # fmt: skip
def test_chinese_page_has_chinese_results_and_errors(browser, book, values):
    given = {"n": "1e6", "p": "1%"} | dict(pair.split("=") for pair in values.split("&"))
    browser.open(f"{book}zh/calculator.html#" + "&".join(f"{name}={value}" for name, value in given.items() if value))
    root = browser.find("#petal-calculator")
    WebDriverWait(browser.driver, 30).until(lambda _: root.get_attribute("data-state"))
    text = browser.find("#petal-calculator .petal-result").text + browser.find("#petal-calculator .petal-message").text
    assert re.search("[\u4e00-\u9fff]", text)
    english = set(re.findall("[a-z-]{3,}", text)) - {"petal", "log"}
    assert not english, text
