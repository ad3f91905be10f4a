"""Records pickles of every class: `python pickles.py` writes `pickles.json`, which is never changed.

A later version must read them. A new class gets a line of its own: run the script, and keep the old lines.
"""

import base64
import json
import pickle
import tempfile
import zlib
from pathlib import Path

import petal

FILE = Path(__file__).with_suffix(".json")
KEYS = ["a", "b", b"c\xff", 7]


def objects() -> dict[str, object]:
    """Returns one object of each class."""
    made: dict[str, petal.Filter] = {
        "BloomFilter": petal.BloomFilter(20, seed=3),
        # The probes of the recorded filters; new ones of this rate have seven.
        "ClassicBloomFilter": petal.ClassicBloomFilter(20, probes=6),
        "CountingBloomFilter": petal.CountingBloomFilter(20),
        "ClassicCountingBloomFilter": petal.ClassicCountingBloomFilter(20, probes=6),
        "QuotientFilter": petal.QuotientFilter(20),
        "VectorQuotientFilter": petal.VectorQuotientFilter(20),
        "ScalableBloomFilter": petal.ScalableBloomFilter(20),
        "WindowedBloomFilter": petal.WindowedBloomFilter(20),
        "ForeignFilter": petal.ForeignFilter("spark-v2", 20),
    }
    for filter in made.values():
        filter.update(KEYS)
    made["BloomFilter"].metadata = '{"made": "for a pickle"}'
    made["StaticFilter"] = petal.StaticFilter(KEYS)
    made["FilterCascade"] = petal.FilterCascade(KEYS, ["d", "e"])
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.write_text("1\n2\n1\n")
        reports = {"Report": petal.dedup(lines), "CountReport": petal.count(lines)}
    return made | reports | {"IncompatibleError": petal.IncompatibleError("text")}


def to_text(made: object, protocol: int) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(made, protocol), 9)).decode()


def from_text(text: str) -> object:
    return pickle.loads(zlib.decompress(base64.b64decode(text)))


if __name__ == "__main__":
    recorded = {name: {p: to_text(made, p) for p in (2, 5)} for name, made in objects().items()}
    FILE.write_text(json.dumps({petal.__version__: recorded}, indent=1) + "\n")
