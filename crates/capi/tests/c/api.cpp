// The classes of petal.hpp.
#include <petal.hpp>

#undef NDEBUG
#include <cassert>

int main(int, char **arguments) {
    petal::filter seen("bloom capacity=1e4 fpr=0.001");
    assert(seen.insert("one") && !seen.insert("one") && seen.contains("one") && !seen.contains("two"));
    seen.insert(petal::keys(std::vector<std::uint64_t>{7, 8}));
    assert(seen.contains(std::uint64_t{7}) && !seen.contains(std::uint64_t{9}));
    const std::vector<std::string> texts{"one", "two", ""};
    assert((seen.contains(petal::keys::of(texts)) == std::vector<bool>{true, false, false}));
    assert(seen.type() == "bloom" && seen.stats().inserted == 3);

    seen.save(arguments[1], "{}");
    petal::filter mapped = petal::filter::open(arguments[1]);
    mapped.verify();
    assert(mapped.contains("one") && mapped.metadata() == "{}");
    petal::filter copy = mapped.copy(), moved = std::move(mapped);
    copy.insert("two");
    seen.unite(copy);
    assert(seen.contains("two") && !moved.contains("two"));

    const petal::secret secret{1, 2, 3};
    const std::vector<std::string_view> members{"a", "b"}, others{"c"};
    const auto cascade =
        petal::filter::build("cascade fpr=0.01", petal::keys::of(members), petal::keys::of(others), &secret);
    assert(cascade.contains("a") && cascade.contains("b") && !cascade.contains("c"));
    const auto fixed = petal::filter::build("static fpr=0.01", petal::keys::of(members));
    assert(fixed.contains("a"));

    try {
        petal::filter::open("/no/such/file");
        return 1;
    } catch (const petal::error &error) {
        assert(error.code() == PETAL_IO && error.what()[0] != '\0');
    }
    try {
        petal::filter counting("counting capacity=9 fpr=0.1");
        assert(!counting.remove("x"));
        seen.remove("x");
        return 1;
    } catch (const petal::error &error) {
        assert(error.code() == PETAL_UNSUPPORTED);
    }
    return 0;
}
