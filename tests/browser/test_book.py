"""Every page of the book: no console error, every picture loaded, no broken link, no request to another server."""

from urllib.parse import quote, unquote, urldefrag

import pytest

from conftest import BOOK

# The list of chapters for browsers without scripts, and the page for wrong addresses.
PARTS = {"toc.html", "404.html"}
PAGES = sorted(str(page.relative_to(BOOK)) for page in BOOK.rglob("*.html") if page.name not in PARTS)

LINKS = """
return [...document.querySelectorAll('a[href], link[href], script[src], img[src]')]
    .map(e => e.href?.baseVal ?? e.href ?? e.src).filter(url => url.startsWith(location.origin))
"""


@pytest.fixture(scope="session")
def ids():
    """The ids of the elements of each page that was opened as the target of a link."""
    return {}


@pytest.mark.parametrize("page", PAGES)
def test_page_is_complete(browser, book, page):
    browser.open(book + page)
    assert browser.run("return document.querySelector('main h1, main h2')?.innerText"), "no heading"
    assert browser.run("return document.documentElement.lang") == ("zh-CN" if page.startswith("zh/") else "en")
    broken = browser.run("return [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)")
    assert not broken, "pictures that are not loaded"
    requests = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
    foreign = [url for url in requests if not url.startswith((book, "data:", "blob:"))]
    assert not foreign, "requests to other servers"
    for url in set(browser.run(LINKS)):
        path = unquote(urldefrag(url).url.removeprefix(book).split("?")[0]) or "index.html"
        assert (BOOK / path).is_file(), f"broken link to {url}"


@pytest.mark.parametrize("page", PAGES)
def test_page_fits_a_phone(browser, book, page):
    browser.view(width=390, height=800)
    browser.open(book + page)
    screens = browser.run("return document.documentElement.scrollHeight") / 800
    assert screens <= 15, "longer than 15 screens"
    browser.view(width=360, height=800)
    assert browser.overflow() <= 0


def test_search_finds_a_page(browser, book):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.open(book + "choosing.html?search=quotient")
    found = "return document.querySelectorAll('#mdbook-searchresults li').length"
    WebDriverWait(browser.driver, 20).until(lambda _: browser.run(found) > 0)


@pytest.mark.parametrize("words", ["误判率", "布隆过滤器", "误判率 黑名单"])
def test_search_finds_chinese_words(browser, book, words):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.open(f"{book}zh/introduction.html?search={quote(words)}")
    found = "return [...document.querySelectorAll('#mdbook-searchresults li')].map(e => e.innerText)"
    WebDriverWait(browser.driver, 20).until(lambda _: browser.run(found))
    marked = browser.run("return document.querySelector('#mdbook-searchresults em').innerText")
    assert marked == words.split()[0]
    browser.screenshot("search-chinese")
    browser.find("#mdbook-searchresults a").click()
    for word in words.split():
        assert word in browser.find("main").text


def test_search_in_chinese_finds_nothing_else(browser, book):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.open(f"{book}index.html?search={quote('误判律')}")
    header = "return document.getElementById('mdbook-searchresults-header').innerText"
    WebDriverWait(browser.driver, 20).until(lambda _: browser.run(header))
    assert not browser.find_all("#mdbook-searchresults li")


@pytest.mark.parametrize("dark", [False, True])
def test_theme_follows_the_system(browser, book, dark):
    browser.view(dark=dark)
    browser.open(book + "choosing.html")
    colour = browser.run("return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(colour[:3]) < 300) == dark
