// C functions around filters of Boost.Bloom for the benchmark beside this file, which says how to compile it.
// Keys are mixed hashes, so the filters hash with the identity.
#include <boost/bloom/fast_multiblock32.hpp>
#include <boost/bloom/fast_multiblock64.hpp>
#include <boost/bloom/filter.hpp>
#include <cstddef>
#include <cstdint>

struct identity {
  using is_avalanching = void;
  std::size_t operator()(std::uint64_t hash) const { return hash; }
};

template <class Block>
using filter = boost::bloom::filter<std::uint64_t, 1, Block, 0, identity>;

template <class F>
void contains_bulk(const F& f, const std::uint64_t* keys, std::size_t n, std::uint64_t* found) {
  std::uint64_t word = 0;
  std::size_t at = 0;
  f.may_contain(keys, keys + n, [&](const std::uint64_t&, bool yes) {
    word = word >> 1 | std::uint64_t(yes) << 63;
    if (++at % 64 == 0) *found++ = word;
  });
  if (at % 64 != 0) *found = word >> (64 - at % 64);
}

#define FUNCTIONS(name, block) \
  using name = filter<boost::bloom::block<8>>; \
  extern "C" { \
  void* name##_new(std::size_t bits) { return new name(bits); } \
  std::size_t name##_bits(const void* f) { return static_cast<const name*>(f)->capacity(); } \
  void name##_clear(void* f) { static_cast<name*>(f)->clear(); } \
  void name##_insert(void* f, const std::uint64_t* keys, std::size_t n) { \
    for (std::size_t i = 0; i < n; ++i) static_cast<name*>(f)->insert(keys[i]); \
  } \
  void name##_insert_bulk(void* f, const std::uint64_t* keys, std::size_t n) { \
    static_cast<name*>(f)->insert(keys, keys + n); \
  } \
  std::size_t name##_count(const void* f, const std::uint64_t* keys, std::size_t n) { \
    std::size_t found = 0; \
    for (std::size_t i = 0; i < n; ++i) found += static_cast<const name*>(f)->may_contain(keys[i]); \
    return found; \
  } \
  void name##_contains_bulk(const void* f, const std::uint64_t* keys, std::size_t n, std::uint64_t* found) { \
    contains_bulk(*static_cast<const name*>(f), keys, n, found); \
  } \
  }

FUNCTIONS(fm32, fast_multiblock32)
FUNCTIONS(fm64, fast_multiblock64)
