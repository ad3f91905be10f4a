"""The form of the page on breached passwords asks filters of web servers, and the package runs in a worker.

The filter of another server has 10 million hashes, from the program, `PETAL_PROGRAM` or the debug build.
"""

import subprocess

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from conftest import BOOK
from test_calculator import PETAL

PAGE = "uses/breached-passwords.html"
KEYS = 10_000_000


@pytest.fixture(scope="module")
def large_filter(tmp_path_factory, serve):
    """The address of a filter with the hashes of password-1 to password-10000000."""
    folder = tmp_path_factory.mktemp("filters")
    build = f"seq -f password-%.0f {KEYS} | '{PETAL}' build --type static -p 0.78% --key-transform sha1 -o known.petal"
    subprocess.run(["bash", "-c", build], cwd=folder, check=True)
    return serve(folder) + "known.petal"


@pytest.fixture
def ask(browser, book):
    """Returns a function that asks for a password, and returns the state and the message."""
    browser.open(book + PAGE)
    return asker(browser)


def asker(browser):
    form = browser.find("#petal-remote")
    WebDriverWait(browser.driver, 30).until(lambda _: browser.find_all("#petal-remote form"))

    def ask(password, url=None):
        if url:
            browser.run("document.getElementById('petal-remote-url').value = arguments[0]", url)
        browser.run("document.getElementById('petal-remote-key').value = arguments[0]", password)
        browser.run("document.querySelector('#petal-remote form').requestSubmit()")
        WebDriverWait(browser.driver, 30).until(lambda _: form.get_attribute("data-state"))
        return form.get_attribute("data-state"), browser.find("#petal-remote .petal-message").text

    return ask


def test_the_list_of_the_page(ask, browser):
    assert ask("password-7")[0] == "present"
    state, message = ask("meadow-lantern-96")
    assert state == "absent" and "20,000 hashes" in message
    browser.screenshot("remote")


def test_the_chinese_page(browser, book):
    browser.open(book + "zh/" + PAGE)
    ask = asker(browser)
    state, message = ask("password-7")
    assert state == "present" and message.startswith("可能在名单上。") and "20,000" in message
    assert browser.find("#petal-remote form").text.split() == ["过滤器", "密码", "查询"]


def test_a_large_filter_of_another_server(ask, large_filter):
    found = [ask(f"password-{number}", large_filter) for number in (1, 4_711_000, KEYS)]
    assert [state for state, _ in found] == ["present"] * 3
    assert all("10,000,000 hashes" in message for _, message in found)
    requests = [int(message.rstrip(".").rsplit(" ", 1)[1]) for _, message in found]
    assert all(count <= 2 for count in requests[1:]), requests
    absent = [ask(f"meadow-lantern-{number}", large_filter)[0] for number in range(20)]
    assert absent.count("absent") >= 18


def test_a_page_without_a_filter_is_an_error(ask, browser, book):
    state, message = ask("password-7", book + "index.html")
    assert state == "error" and "not a petal file" in message
    state, message = ask("password-7", book + "none.petal")
    assert state == "error" and "404" in message
    browser.errors()  # that of 404


def test_the_package_runs_in_a_worker(browser, book):
    browser.open(book + PAGE)
    script = """
        const done = arguments[arguments.length - 1];
        const code = `
            import { BloomFilter, open } from "${arguments[0]}interactive/petal-filters/petal.js";
            const filter = BloomFilter.withFpr(1000, 0.01);
            filter.add("one");
            const published = await open("${arguments[0]}interactive/passwords.petal");
            postMessage([filter.has("one"), filter.has("two"), published.info().inserted]);
        `;
        const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
        const worker = new Worker(url, { type: "module" });
        worker.onmessage = (event) => done(event.data);
        worker.onerror = (event) => done(event.message);
    """
    assert browser.driver.execute_async_script(script, book) == [True, False, 20_000]


def test_the_conformance_set(browser, book, serve):
    """Every file that JavaScript reads gives its answers in a browser."""
    conformance = serve(BOOK.parents[1] / "testdata/conformance")
    browser.open(book + PAGE)
    browser.driver.set_script_timeout(60)
    script = """
        const [book, set, done] = arguments;
        const run = async () => {
            const { openRemote } = await import(book + "interactive/petal-filters/petal.js");
            const bytes = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (byte) => parseInt(byte, 16));
            const lines = async (name) => (await (await fetch(set + name)).text()).trim().split("\\n").map(JSON.parse);
            const wrong = [];
            let asked = 0;
            for (const { file, type, secret } of await lines("files.jsonl")) {
                if (!["bloom", "classic", "static", "cascade"].includes(type)) continue;
                const options = secret ? { secret: bytes(secret) } : {};
                const answers = await lines(file.replace(".petal", ".jsonl"));
                const keys = answers.map((a) => a.text ?? (a.number ? BigInt(a.number) : bytes(a.bytes ?? "")));
                const filter = await openRemote(set + file, options);
                const found = await filter.hasMany(keys);
                answers.forEach(({ present }, at) => present === found[at] || wrong.push([file, at]));
                asked += keys.length;
                filter.close();
            }
            return [asked, wrong];
        };
        run().then(done, (error) => done([0, String(error)]));
    """
    asked, wrong = browser.driver.execute_async_script(script, book, conformance)
    assert asked > 1500 and not wrong, (asked, wrong)
