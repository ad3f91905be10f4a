"""Reading on a phone, in the dark and without a mouse: pictures, wide tables and code, contrast, order of the focus."""

from pathlib import Path

import axe_core_python
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from conftest import BOOK

# One page of each kind: pictures, plots, tables, code, forms, Chinese.
PAGES = [
    "index.html", "how-it-works.html", "calculator.html", "choosing.html", "performance/index.html", "uses/lab.html",
    "guides/redis-operate.html", "zh/calculator.html",
]  # fmt: skip
WITH_PICTURES = ["index.html", "performance/index.html", "uses/lab.html", "zh/introduction.html"]
PICTURES = sorted(str(path.relative_to(BOOK)) for path in BOOK.rglob("*.svg") if not path.name.startswith("favicon"))
# The width of the text of a page on a phone of 390 pixels.
PHONE = 350

# The brightness of the pixels of a picture, from 0 to 255: that of the background, of the darkest and the brightest.
BRIGHTNESS = """
const [picture, done] = arguments;
const image = new Image();
image.onload = () => {
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.width, image.height);
    const all = [];
    for (let at = 0; at < data.length; at += 4) all.push((2 * data[at] + 5 * data[at + 1] + data[at + 2]) / 8);
    all.sort((a, b) => a - b);
    done([all[all.length >> 1], all[0], all[all.length - 1]]);
};
image.src = "data:image/png;base64," + picture;
"""


def brightness(browser):
    """Returns background, darkest and brightest pixel of each picture of the page."""
    found = []
    for picture in filter(lambda picture: picture.is_displayed(), browser.find_all("main img")):
        place = "arguments[0].scrollIntoView(); const {x, y, width, height} = arguments[0].getBoundingClientRect();"
        clip = browser.run(f"{place} return {{x, y: y + scrollY, width, height, scale: 1}}", picture)
        shown = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        found.append(browser.driver.execute_async_script(BRIGHTNESS, shown["data"]))
    assert found, "no pictures"
    return found


OTHER_THEMES = [("uses/lab.html", theme) for theme in ("rust", "coal", "ayu")]


@pytest.mark.parametrize(
    ("page", "theme"), [(page, theme) for page in WITH_PICTURES for theme in ("light", "navy")] + OTHER_THEMES
)
def test_pictures_follow_the_theme_of_the_page(browser, book, page, theme):
    # The theme that a reader chose, whatever that of the system is.
    light = theme in ("light", "rust")
    browser.view(width=390, height=800, dark=light)
    browser.open(book + page)
    browser.run("localStorage.setItem('mdbook-theme', arguments[0])", theme)
    try:
        browser.open(book + page)
        browser.screenshot(f"pictures-{page.replace('/', '-')}-{theme}")
        for background, darkest, brightest in brightness(browser):
            if light:
                assert background > 200 and darkest < 90
            else:
                assert background < 50 and brightest > 180
    finally:
        browser.run("localStorage.removeItem('mdbook-theme')")


def test_enlarged_picture_has_the_background_of_the_page(browser, book):
    browser.view(dark=True)
    browser.open(book + "uses/lab.html")
    browser.find("main label img").click()
    color = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    picture, page = (browser.run(color, css) for css in ("main .img-wrapper > img", "html"))
    assert picture == page
    browser.find("main .img-wrapper").click()


TEXTS = """
return [...document.querySelectorAll('text')].map(e => {
    const { x, y, width, height } = e.getBBox();
    return [e.textContent, x, y, width, height, parseFloat(getComputedStyle(e).fontSize)];
});
"""


@pytest.mark.parametrize("picture", PICTURES)
def test_labels_of_pictures_are_whole_apart_and_readable(browser, book, picture):
    browser.open(book + picture)
    left, top, right, bottom = map(float, browser.run("return document.rootElement.getAttribute('viewBox')").split())
    texts = browser.run(TEXTS)
    assert texts
    for text, x, y, width, height, size in texts:
        assert left <= x and top <= y and x + width <= right and y + height <= bottom, f"cut: {text}"
        assert size * PHONE / right >= 9.5, f"too small on a phone: {text}"
    # Lines of text may touch: a box is higher than its letters.
    boxes = [(text, x, y + height * 0.2, x + width, y + height * 0.8) for text, x, y, width, height, _ in texts]
    for number, (one, *a) in enumerate(boxes):
        for other, *b in boxes[:number]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], f"collide: {one}, {other}"


WIDE = """
return [...document.querySelectorAll('main *')].filter(e =>
    e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
"""


@pytest.mark.parametrize("page", ["calculator.html", "choosing.html", "performance/index.html", "guides/columns.html"])
def test_wide_tables_and_code_show_that_they_scroll(browser, book, page):
    browser.view(width=390, height=800)
    browser.open(book + page)
    boxes = browser.run(WIDE)
    assert boxes
    for box in boxes:
        style = "const s = getComputedStyle(arguments[0]); return [s.maskImage, arguments[0].tabIndex]"
        mask, tab = browser.run(style, box)
        assert "gradient" in mask and tab == 0
        classes = box.get_attribute("class").split()
        assert "petal-after" in classes and "petal-before" not in classes
    at_end = """
    const [box, done] = arguments;
    box.scrollLeft = box.scrollWidth;
    requestAnimationFrame(() => requestAnimationFrame(() => done(box.className.split(' '))));
    """
    classes = browser.driver.execute_async_script(at_end, boxes[0])
    assert "petal-before" in classes and "petal-after" not in classes


def test_what_fits_does_not_scroll(browser, book):
    browser.open(book + "choosing.html")
    assert not browser.run("return document.querySelectorAll('main .table-wrapper[tabindex]').length")
    browser.view(width=390, height=800)
    browser.open(book + "choosing.html")
    assert browser.run("return document.querySelectorAll('main .table-wrapper[tabindex]').length")


def test_numbers_and_options_are_not_divided(browser, book):
    browser.open(book + "choosing.html")
    text = browser.run("return document.querySelector('main').textContent")
    assert "1\u00a0%" in text and "1 %" not in text
    options = [code.text for code in browser.find_all("main code.petal-option")]
    assert "--least-space" in options and "build --keyed" in options and "StaticFilter" not in options


# What mdBook writes around a page is not checked.
VIOLATIONS = """
const done = arguments[arguments.length - 1];
axe.run("main", { resultTypes: ["violations"] }).then(({ violations }) => done(violations.flatMap(({ id, nodes }) =>
    nodes.map(node => `${id}: ${node.html} ${node.any[0]?.message ?? ""}`))));
"""


@pytest.mark.parametrize(("page", "dark"), [(page, True) for page in PAGES] + [("calculator.html", False)])
def test_rules_of_axe(browser, book, page, dark):
    browser.view(width=390, height=800, dark=dark)
    browser.open(book + page)
    browser.run(Path(axe_core_python.__file__).with_name("axe.min.js").read_text())
    assert browser.driver.execute_async_script(VIOLATIONS) == []


# The place of the element that has the focus, how it shows it, and what it is.
FOCUS = """
const focus = document.activeElement, { top, left, height } = focus.getBoundingClientRect();
return [top + scrollY + height / 2, left, getComputedStyle(focus).outlineStyle, focus.outerHTML];
"""


@pytest.mark.parametrize("page", ["calculator.html", "zh/how-it-works.html"])
def test_tab_order_is_the_order_of_reading(browser, book, page):
    browser.open(book + page)
    first = browser.find("main select, main input")
    browser.run("arguments[0].focus()", first)
    places = []
    for _ in range(8):
        y, x, outline, html = browser.run(FOCUS)
        places.append((y, x))
        assert outline != "none", html
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    # Fields side by side differ by a few pixels in height.
    lines = [(round(y / 12), x) for y, x in places]
    assert lines == sorted(lines) and len(set(lines)) == len(lines)


@pytest.mark.parametrize("page", ["calculator.html", "zh/calculator.html"])
def test_first_tab_leads_to_the_text(browser, book, page):
    browser.open(book + page)
    for key in (Keys.TAB, Keys.ENTER, Keys.TAB):
        ActionChains(browser.driver).send_keys(key).perform()
        if key == Keys.TAB:
            visible = browser.run("return document.activeElement.getBoundingClientRect().top >= 0")
            assert visible, browser.run("return document.activeElement.outerHTML")
    assert browser.run("return document.activeElement === document.querySelector('main a, main button, main input')")
