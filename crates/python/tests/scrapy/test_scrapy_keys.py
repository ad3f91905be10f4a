"""Keys of requests in `meta`."""

import pytest
from conftest import numbered_request
from test_scrapy_pending import Engine, count_pending


def keyed(number, key, **meta):
    return numbered_request(number).replace(meta={"petal_dupefilter_key": key} | meta)


def test_requests_with_equal_keys_are_the_same(open_filter):
    dupefilter = open_filter()
    seen = dupefilter.filter.request_seen
    assert not seen(keyed(0, "item-1"))
    assert seen(keyed(1, "item-1")) and seen(keyed(1, b"item-1"))
    assert not seen(keyed(0, "item-2"))
    # A request without a key is compared as before.
    assert not seen(numbered_request(0))
    assert seen(numbered_request(0))
    assert not seen(keyed(0, dupefilter.filter._fingerprint(numbered_request(0))))
    dupefilter.close()


def test_redirect_that_inherits_a_key_is_not_filtered(open_filter):
    dupefilter = open_filter()
    seen = dupefilter.filter.request_seen
    assert not seen(keyed(0, "a"))
    assert not seen(keyed(1, "a", redirect_times=1))
    assert seen(keyed(1, "a", redirect_times=1))
    assert not seen(keyed(1, "b", redirect_times=1))
    dupefilter.close()


def test_pending_request_with_a_key_is_scheduled_again_and_removed(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    Engine(dupefilter).crawl(keyed(0, "a"))
    dupefilter.kill()
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    assert engine.urls() == [numbered_request(0).url]
    assert dupefilter.filter.request_seen(keyed(1, "a"))
    engine.scheduler.next_request()
    engine.scheduler.next_request()
    assert count_pending(tmp_path) == 0
    dupefilter.close()


def test_key_of_another_type_is_an_error(open_filter):
    dupefilter = open_filter()
    with pytest.raises(TypeError, match=r"meta\['petal_dupefilter_key'\]: expected str or bytes, found 7: <GET"):
        dupefilter.filter.request_seen(keyed(0, 7))
    dupefilter.close()
