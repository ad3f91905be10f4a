"""Writes what w3lib and surt make of many URLs: python peers/urls/golden.py FILE

Needs the packages of peers/urls/requirements.txt. Each line of FILE, which is compressed with xz, has a URL, the
result of w3lib.url.canonicalize_url and that of surt.surt, separated by tabs. Bytes other than printable ASCII, and the
backslash, are written as \\xNN. `=` is the URL unchanged, `!` an exception.
"""

import itertools
import lzma
import random
import socket
import sys
import unicodedata

import surt
from w3lib.url import canonicalize_url

RANDOM = random.Random(22)
PRINTABLE = list(map(chr, range(32, 127)))

SCHEMES = (
    ["http://"] * 12 + ["https://"] * 12
    + ["", "", "//", "HTTP://", "Https://", "ftp://", "ws://", "wss://", "file://", "file:///", "git+ssh://",
    "foo://"]
    + ["http:", "http:/", "http:///", "http:////", "http://http://", "https://http://", "dns:", "mailto:", "data:"]
    + ["javascript:", "urn:", "tel:", "sip:", "rtsp://", "filedesc://", "about:", "foo:", "foo:/", "1http://",
    "h+t-p.://"]
)
USERS = ["user@", "user:pass@", "us%65r:p%40ss@", ":@", "@", "a@b@", "u;x=1:p&q@", "üser:päss@", "user:@", "%zz@",
"a b@"]
LABELS = [
    "example", "Example", "EXAMPLE", "www", "WWW", "www2", "www12", "wwwx", "m", "a", "cdn-1", "foo_bar",
    "xn--bcher-kva",
    "bücher", "BÜCHER", "straße", "faß", "日本語", "例え", "пример", "ПРИМЕР", "مثال", "דוגמה", "ελλάς", "ΕΛΛΆΣ", "한국",
    "café", "cafe\u0301", "ﬁsh", "ａｂｃ", "①②", "½", "K", "İstanbul", "ſ", "a\u00ad", "zero\u200bwidth", "i❤️", "💩",
    "ქართული",
    "\u10a0bc", "%65xample", "%C3%BC", "ex%61mple", "%2e", "%25", "a" * 63, "a" * 64, "ü" * 40, "a%00b", "x y", "*",
    "", "",
    "\u0378x", "\ua640", "\u2c00", "a\u0338", "℀", "⒈", "；", "\ue000", "שa", "1ש", "ش1ش", "-a-", "a!b", "a$b", "a,b",
    "(x)",
]
TLDS = ["com", "com", "com", "org", "de", "co.uk", "COM", "com.", "com..", "рф", "中国", "xn--p1ai", "io", "中国。cn",
"．jp"]
ADDRESSES = [
    "127.0.0.1", "192.168.0.1", "0.0.0.0", "255.255.255.255", "256.1.1.1", "1.2.3", "1.2", "1", "2130706433",
    "4294967296",
    "0x7f.1", "0x7f000001", "017700000001", "010.010.010.010", "010.1", "08.1", "1.08", "1.2.3.4.5", "1.2.3.4.",
    "1..2",
    "1.2.3.65535", "1.2.65536", "1.16777215", "1.16777216", "0", "00", "0.1", "0.08", "99999999999999999999",
    "１２.1.1.1",
    "[::1]", "[::]", "[::0:1]", "[2001:db8::1]", "[2001:DB8:0:0:1:0:0:1]",
    "[2001:0db8:0000:0000:0000:0000:0000:0001]",
    "[::ffff:1.2.3.4]", "[::FFFF:0102:0304]", "[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7::]", "[1::2:3:4:5:6:7:8]",
    "[fe80::1%eth0]",
    "[fe80::1%25ETH0]", "[fe80::1%]", "[v1.a:b]", "[v1.abc]", "[V1.a]", "[vz.a]", "[1.2.3.4]", "[::1", "::1]", "[]",
    "[x]",
    "a[::1]", "[::1]x", "[12345::]", "[1:2]", "[::1.2.3.04]", "[é::1]", "[0:0:1:0:0:0:1:0]", "[1:0:0:2:0:0:3:4]",
]
PORTS = [":80", ":443", ":8080", ":", "::", ":0", ":00080", ":65535", ":65536", ":99999999999", ":8a", ":-1", ":+80",
": 80", ":８０"]
SEGMENTS = [
    "a", "b", "Index.HTML", "index.html", "..", ".", "...", "", "", "%2e", "%2E%2e", ".%2e", "a b", "a%20b", "a+b",
    "%41", "%7Euser",
    "~user", "%zz", "%", "%2", "%2f", "%2F", "%25", "%2525", "%252f", "%3f", "%3B", "%3b", ";x=1", "a;b", "a;b;c",
    ";", "é", "%C3%A9",
    "%c3%a9", "%e9", "日本", "\\", "a\\b", "|", "[x]", "{y}", "^", "`", '"', "'", "<z>", "(1)", "a:b", "@",
    "!$&'()*+,=", "%23", "\x01",
    "\x7f", "%00", "%0a", "%E2%80%A8", "\u2028", "(A(abcdefghijklmnopqrstuvwx))", "(abcdefghijklmnopqrstuvwx)",
    "page.aspx", "x.ASPX;y",
    "(a(0123456789abcdefghijklmn)b(0123456789abcdefghijklmn))", "page%3Fx.aspx", "(ABCDEFGHIJKLMNOPQRSTUVWX)",
    "%%32%35", "%%2f", "%%41",
]
HEX32 = "0123456789abcdefABCDEF0123456789"
PARAMETERS = [
    "a=1", "b=2", "a=2", "A=1", "b=", "b", "=", "=x", "", "", "a==b", "a=b=c", "c=d&amp;e=f", "q=a+b", "q=a%20b",
    "q=a%2Bb", "q=%26",
    "q=%3D", "%61=1", "q=%zz", "q=%", "q=%e9", "q=é", "q=日本", "é=1", "q=a b", "q='x'", 'q="x"', "q=<x>", "a[]=1",
    "a[1]=2", "a%5B%5D=3",
    "utm_source=x", "utm_medium=y", "fbclid=z", "x;y=1", "q=a/b?c", "q=http://x.y/?z", "q=%2525", "q=%252f",
    "q=%%32f", "+=+", "q=%00",
    "jsessionid=" + HEX32, "JSESSIONID=" + HEX32, "phpsessid=" + HEX32, "PHPSESSID=" + HEX32 + "x", "sid=" + HEX32,
    "xsid=" + HEX32,
    "ASPSESSIONIDABCDEFGH=" + "abcdefghijklmnopqrstuvwx", "ASPSESSIONIDABCDEFG1=" + "abcdefghijklmnopqrstuvwx",
    "cfid=1&cftoken=2",
    "cfid=&cftoken=2", "cfid=1&cftoken=", "CFID=12&CFTOKEN=ab", "cfid=cfid=1&cftoken=2",
    "sid=" + HEX32[:31], "q=\x01", "q=\x7f", "q=~-._!*()",
]
FRAGMENTS = ["#", "#a", "#a?b=c", "##", "#é", "#!/x", "#%41", "#/a?b#c"]
SPACES = [" ", "\t", "\n", "\r", "\x0b", "\x0c", "\x00", "\u00a0", "\u3000", "\x1f"]
WHOLE = [
    "", " ", "\t", "-", "/", "//", "///", "?", "#", "a", "a?b", "a#b", "?a=b", "#a", "/a/../b", "a/../b",
    "mailto:a/../b@c", "foo:/a/../b",
    "mailto:User@Example.COM?subject=b&cc=a", "data:text/html,<p>a?b</p>", "data:text/plain;base64,QUJD",
    "javascript:alert(1)", "about:blank",
    "urn:isbn:123", "tel:+1-234;ext=5", "sip:a@b;c=d", "news:x.y", "dns:www.example.com", "filedesc://foo.arc.gz",
    "filedesc:x", "warcinfo:x",
    "example.com", "www.example.com/a", "example.com:80/a", "example.com:80", "localhost:8080/x", "http://",
    "http://?", "http://#", "http:///a",
    "http://a/?", "http://a?", "http://a/??", "http://a/?&&", "http://a?b#c?d", "http://a/#b?c", "http://a;b",
    "http://a/;b", "http://a/b;", "x:",
    "http://@/", "http://:80/", "http://a:80:90/", "http://a@b:c@d/", "http://[u]@host/", "http://[u]@v1.x/",
    "http://[u]@[::1]/", ":", "://", ":a",
    "http://..", "http://.a.", "http://a..b...c/", "http://evil.com\\@good.com/", "http:\\\\a\\b?c\\d#e\\f",
    "foo:\\\\a\\b", "http://www./", "http://www1./a",
    "http://www.www.a/", "http://%77ww.a/", "http://a/%2e%2e/b", "http://a/b/..", "http://a/b/.", "http://a/..",
    "http://a/../..", "http://a/./", "file:///c:/x",
    "file:a", "file:/a", "ws:", "git:", "http:a", "http:a:80/b", "HTTP:a", "httpx:/a/b", "http:/", "https:",
    "https:?a", "http:?a", "http://a/b?c=d?e=f",
    "http://a/?sid=" + HEX32 + "&sid=" + HEX32,
    "http://a/(a)/(abcdefghijklmnopqrstuvwx)/b.aspx/(abcdefghijklmnopqrstuvwx)/c.aspx", "\ufeffhttp://a/",
    "http://a\u03f9b/", "http://a\u1e9eb/",
    "http://a/?" + "&".join(f"p{n % 7}={n % 3}" for n in range(60)), "http://" + "9" * 4301 + "/",
    "http://" + "9" * 4300 + "/", "http://a/" + "%25" * 9,
    "http://a/" + "../" * 20, "http://" + "a." * 200 + "b/", "http://0." + "1" * 40 + "/", "http://1.2.3.4%0a/",
    "http://1%0a/", "http://a:" + "0" * 4400 + "1/",
]


def host():
    kind = RANDOM.random()
    if kind < 0.15:
        return RANDOM.choice(ADDRESSES)
    if kind < 0.5:
        return RANDOM.choice(["example.com", "www.example.com", "Sub.Example.co.uk", "www3.archive.org", "localhost",
        "a.b-c.de", "news.site.io"])
    return ".".join([RANDOM.choice(LABELS) for _ in range(RANDOM.randint(0, 3))] + [RANDOM.choice(TLDS)])


def sometimes(share, values):
    return RANDOM.choice(values) if RANDOM.random() < share else ""


def url():
    path = "".join("/" + RANDOM.choice(SEGMENTS) for _ in range(RANDOM.randint(0, 5)))
    query = ""
    if RANDOM.random() < 0.6:
        query = "?" + "&".join(RANDOM.choice(PARAMETERS) for _ in range(RANDOM.randint(0, 5)))
    text = RANDOM.choice(SCHEMES) + sometimes(0.08, USERS) + host() + sometimes(0.2,
    PORTS) + path + query + sometimes(0.2, FRAGMENTS)
    if RANDOM.random() < 0.05:
        at = RANDOM.choice([0, len(text), RANDOM.randint(0, len(text))])
        text = text[:at] + RANDOM.choice(SPACES) + text[at:]
    return text.encode()


def mutated():
    text = bytearray(url())
    for _ in range(RANDOM.randint(1, 3)):
        at = RANDOM.randint(0, len(text))
        delimiter = RANDOM.choice("%:/?#[]@!$&'()*+,;=.\\ 0aF")
        byte = RANDOM.choice([RANDOM.randrange(256), ord(delimiter), ord(RANDOM.choice(PRINTABLE))])
        if RANDOM.random() < 0.6 or at == len(text):
            text.insert(at, byte)
        else:
            text[at] = byte
    return bytes(text)


def labels():
    """Code points that may matter in a host name. Those newer than Python's Unicode depend on its version."""
    for code in list(range(0x80, 0x3100)) + list(range(0xA000, 0xB000)) + list(range(0xF900,
    0x10000)) + list(range(0x1D400, 0x1D800, 7)):
        if RANDOM.random() < 0.15 and unicodedata.category(chr(code)) != "Cn":
            yield f"http://a{chr(code)}b.com/".encode()


def address_of(name):
    """Without a name server, only addresses have an address. inet_aton would allow white space after them."""
    if name.strip() != name:
        raise socket.gaierror
    try:
        return name, [], [socket.inet_ntoa(socket.inet_aton(name.decode()))]
    except (OSError, ValueError):
        raise socket.gaierror from None


def shown(raw):
    return "".join(chr(byte) if 32 < byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in raw)


def result(function, raw):
    try:
        changed = function(raw)
    except Exception:
        return "!"
    changed = changed.encode() if isinstance(changed, str) else changed
    return "=" if changed == raw else shown(changed)


def main():
    socket.gethostbyname_ex = address_of
    urls = dict.fromkeys(text.encode() for text in WHOLE)
    urls.update(dict.fromkeys(labels()))
    urls.update(dict.fromkeys(url() for _ in range(12_000)))
    urls.update(dict.fromkeys(mutated() for _ in range(7_000)))
    lines = [f"{shown(raw)}\t{result(canonicalize_url, raw)}\t{result(surt.surt, raw)}\n" for raw in urls]
    with lzma.open(sys.argv[1], "wb", preset=9) as file:
        file.write("".join(lines).encode())
    print(len(lines), "URLs")


main()
