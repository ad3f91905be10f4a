"""The pages of `--html`: charts are visible in every width and colour scheme, and on paper."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

PETAL = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/petal"

# The commands that write each page, and how many figures it has.
PAGES = {
    "plan": (["plan -n 1e6 -p 1% --html PAGE"], 1),
    "info": (["build -q -n 60000 -o f a", "info f --html PAGE"], 2),
    "info-overfull": (["build -q -n 9000 --type counting -o g a", "info g --html PAGE"], 2),
    "info-foreign": (["build -q --format guava -n 60000 -o h a", "info h --html PAGE"], 1),
    "estimate": (["plan common a b -m 8M --html PAGE"], 2),
    "common": (["common --strategy partition a b -m 8M -o out --report r", "report r --html PAGE"], 4),
    "diff": (["diff --approx -q a b -o out --report r", "report r --html PAGE"], 3),
    "dedup": (["dedup --strategy memory a b -c --report r", "report r --html PAGE"], 3),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two inputs that share a quarter of their lines."""
    folder = tmp_path_factory.mktemp("reports")
    for name, start in [("a", 0), ("b", 150_000)]:
        numbers = range(start, start + 200_000)
        lines = (f"https://example.org/{number * 2654435761 % 2**32:08x}/{number}\n" for number in numbers)
        (folder / name).write_text("".join(lines))
    return folder


@pytest.fixture(params=PAGES)
def page(request, folder):
    """The name of a page, its URL, and its number of figures."""
    commands, figures = PAGES[request.param]
    path = folder / f"{request.param}.html"
    for command in commands:
        words = [str(path) if word == "PAGE" else word for word in command.split()]
        subprocess.run([PETAL, *words], cwd=folder, check=True)
    return request.param, path.as_uri(), figures


def visible_charts(browser):
    """Returns the boxes of the charts that are shown."""
    script = "return [...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().toJSON())"
    return [box for box in browser.run(script) if box["width"] > 0 and box["height"] > 0]


def brightness(colour):
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return (red * 299 + green * 587 + blue * 114) / 1000


def style(browser, css, name):
    return browser.run("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", css, name)


def shown_text(browser):
    """Returns a selector of a text in a chart that is shown."""
    wide = browser.run("return getComputedStyle(document.querySelector('svg.wide')).display") != "none"
    return f"svg.{'wide' if wide else 'narrow'} text"


@pytest.mark.parametrize("width", [360, 800, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_charts_are_visible(browser, page, width, dark):
    name, url, figures = page
    browser.view(width, 900, dark)
    browser.open(url)
    boxes = visible_charts(browser)
    assert len(boxes) == figures
    assert all(box["width"] >= min(width - 80, 500) and box["height"] >= 80 for box in boxes), boxes
    assert all(box["left"] >= 0 and box["right"] <= width for box in boxes), boxes
    assert browser.overflow() == 0
    back, text = style(browser, "body", "backgroundColor"), style(browser, shown_text(browser), "fill")
    assert (brightness(back) < 60) == dark
    assert abs(brightness(back) - brightness(text)) > 90, (back, text)
    browser.screenshot(f"report-{name}-{width}-{'dark' if dark else 'light'}")


def test_labels_of_charts_do_not_overlap(browser, page):
    _, url, _ = page
    for width in (360, 1280):
        browser.view(width)
        browser.open(url)
        overlaps = browser.run(
            """
            const found = [];
            for (const svg of document.querySelectorAll('svg')) {
              const frame = svg.getBoundingClientRect();
              if (!frame.width) continue;
              const texts = [...svg.querySelectorAll('text')].filter(e => e.textContent.trim());
              const boxes = texts.map(e => [e.textContent.trim(), e.getBoundingClientRect()]);
              for (const [text, a] of boxes) {
                if (a.left < frame.left - 1 || a.right > frame.right + 1) found.push(text + ' is cut off');
                for (const [other, b] of boxes)
                  if (text < other && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 &&
                      b.top < a.bottom - 4) found.push(text + ' / ' + other);
              }
            }
            return found;
            """
        )
        assert overlaps == [], width


def test_print_is_light_and_wide(browser, page):
    _, url, figures = page
    browser.view(700, 900, dark=True, media="print")
    browser.open(url)
    assert len(visible_charts(browser)) == figures
    assert style(browser, "svg.wide", "display") == "block"
    assert style(browser, "svg.narrow", "display") == "none"
    assert brightness(style(browser, "body", "backgroundColor")) > 200
    assert brightness(style(browser, "svg.wide text", "fill")) < 120
