// petal for C++17: the functions of petal.h with owners, exceptions and std types. Header only; link with -lpetal.
#ifndef PETAL_HPP
#define PETAL_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#if __has_include(<span>) && __cplusplus >= 202002L
#include <span>
#endif

#include "petal.h"

namespace petal {

/// A failed operation: what() says what to do, code() is one of petal_code, offset() is where a file is damaged.
class error : public std::runtime_error {
public:
    explicit error(const petal_error &error)
        : std::runtime_error(error.message), code_(error.code), offset_(error.offset) {}

    std::int32_t code() const noexcept { return code_; }
    std::uint64_t offset() const noexcept { return offset_; }

private:
    std::int32_t code_;
    std::uint64_t offset_;
};

/// A secret of 16 bytes.
using secret = std::array<std::uint8_t, PETAL_SECRET_BYTES>;

/// Many keys that stay where they are; only the lengths are copied.
class keys {
public:
    /// `width` bytes for each key, one after the other.
    keys(const void *data, std::size_t width, std::size_t count) noexcept
        : keys_{data, nullptr, width, count} {}

    /// Numbers, whose keys are eight bytes each, the lowest first.
    explicit keys(const std::vector<std::uint64_t> &numbers) : owned_(numbers.size() * 8, '\0') {
        for (std::size_t at = 0; at < owned_.size(); ++at) {
            owned_[at] = static_cast<char>(numbers[at / 8] >> (at % 8 * 8));
        }
        keys_ = {owned_.data(), nullptr, 8, numbers.size()};
    }

    /// Texts, which are copied.
    template <class Texts> static keys of(const Texts &texts) {
        keys result(nullptr, 0, 0);
        for (std::string_view text : texts) {
            result.owned_.append(text);
            result.lengths_.push_back(text.size());
        }
        result.has_lengths_ = true;
        return result;
    }

    std::size_t size() const noexcept { return has_lengths_ ? lengths_.size() : keys_.count; }

    petal_keys get() const noexcept {
        if (has_lengths_) {
            return {owned_.data(), lengths_.data(), 0, lengths_.size()};
        }
        return owned_.empty() ? keys_ : petal_keys{owned_.data(), nullptr, 8, keys_.count};
    }

private:
    petal_keys keys_{};
    std::string owned_;
    std::vector<std::size_t> lengths_;
    bool has_lengths_ = false;
};

/// A filter, which is freed with this object. Moved, not copied: see copy().
class filter {
public:
    /// An empty filter: "bloom capacity=1e6 fpr=0.001".
    explicit filter(const std::string &spec, const secret *secret = nullptr)
        : filter(call([&](petal_error *error) { return petal_build(spec.c_str(), data(secret), error); })) {}

    /// A filter of all its keys: "static fpr=0.001".
    static filter build(const std::string &spec, const keys &members, const secret *secret = nullptr) {
        const petal_keys list = members.get();
        return filter(call([&](petal_error *error) {
            return petal_build_from_keys(spec.c_str(), data(secret), &list, nullptr, error);
        }));
    }

    /// A cascade, which contains no key of `others`: "cascade fpr=0.01".
    static filter build(const std::string &spec, const keys &members, const keys &others,
                        const secret *secret = nullptr) {
        const petal_keys list = members.get(), other_list = others.get();
        return filter(call([&](petal_error *error) {
            return petal_build_from_keys(spec.c_str(), data(secret), &list, &other_list, error);
        }));
    }

    /// The filter of a file, which is mapped and must not be changed meanwhile.
    static filter open(const std::string &path, const secret *secret = nullptr) {
        return filter(call([&](petal_error *error) { return petal_open(path.c_str(), data(secret), error); }));
    }

    /// The filter of the bytes of a file, which must stay until the filter is gone.
    static filter from_bytes(const void *bytes, std::size_t length, const secret *secret = nullptr) {
        return filter(
            call([&](petal_error *error) { return petal_from_bytes(bytes, length, data(secret), error); }));
    }

#ifdef __cpp_lib_span
    static filter from_bytes(std::span<const std::byte> bytes, const secret *secret = nullptr) {
        return from_bytes(bytes.data(), bytes.size(), secret);
    }

    bool contains(std::span<const std::byte> key) const { return contains(key.data(), key.size()); }
#endif

    filter copy() const {
        return filter(call([&](petal_error *error) { return petal_copy(get(), error); }));
    }

    /// False if the key was certainly not inserted.
    bool contains(const void *key, std::size_t length) const { return petal_contains(get(), key, length) != 0; }
    bool contains(std::string_view key) const { return contains(key.data(), key.size()); }
    bool contains(std::uint64_t key) const { return petal_contains_u64(get(), key) != 0; }

    /// One answer for each key.
    std::vector<bool> contains(const keys &keys) const {
        const petal_keys list = keys.get();
        std::unique_ptr<bool[]> found(new bool[keys.size() + 1]());
        check([&](petal_error *error) { return petal_contains_batch(get(), &list, found.get(), error); });
        return std::vector<bool>(found.get(), found.get() + keys.size());
    }

    /// True if the key certainly was not in the filter.
    bool insert(const void *key, std::size_t length) {
        return check([&](petal_error *error) { return petal_insert(get(), key, length, error); }) == 1;
    }
    bool insert(std::string_view key) { return insert(key.data(), key.size()); }
    void insert(const keys &keys) {
        const petal_keys list = keys.get();
        check([&](petal_error *error) { return petal_insert_batch(get(), &list, nullptr, error); });
    }

    /// True if a key was removed.
    bool remove(std::string_view key) {
        return check([&](petal_error *error) { return petal_remove(get(), key.data(), key.size(), error); }) == 1;
    }

    /// Moves a window of time to `now`, in its ticks.
    void advance(std::uint64_t now) {
        check([&](petal_error *error) { return petal_advance(get(), now, error); });
    }

    /// Adds all keys of a filter with the same type, layout and hash.
    void unite(const filter &other) {
        check([&](petal_error *error) { return petal_union(get(), other.get(), error); });
    }

    std::string type() const { return petal_type(get()); }
    std::string metadata() const { return petal_metadata(get()); }

    petal_stats stats() const {
        petal_stats stats{};
        check([&](petal_error *error) { return petal_statistics(get(), &stats, error); });
        return stats;
    }

    void verify() const {
        check([&](petal_error *error) { return petal_verify(get(), error); });
    }

    void save(const std::string &path) const {
        check([&](petal_error *error) { return petal_save(get(), path.c_str(), nullptr, error); });
    }
    void save(const std::string &path, const std::string &metadata) const {
        check([&](petal_error *error) { return petal_save(get(), path.c_str(), metadata.c_str(), error); });
    }

    petal_filter *get() const noexcept { return filter_.get(); }

private:
    struct deleter {
        void operator()(petal_filter *filter) const noexcept { petal_free(filter); }
    };

    explicit filter(petal_filter *filter) noexcept : filter_(filter) {}

    static const std::uint8_t *data(const secret *secret) noexcept {
        return secret == nullptr ? nullptr : secret->data();
    }

    template <class Function> static petal_filter *call(Function function) {
        petal_error failure{};
        petal_filter *filter = function(&failure);
        if (filter == nullptr) {
            throw error(failure);
        }
        return filter;
    }

    template <class Function> static std::int32_t check(Function function) {
        petal_error failure{};
        const std::int32_t result = function(&failure);
        if (result < 0) {
            throw error(failure);
        }
        return result;
    }

    std::unique_ptr<petal_filter, deleter> filter_;
};

} // namespace petal

#endif
