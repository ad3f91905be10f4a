/* petal: approximate set membership. The interface of libpetal for C and C++.
 *
 * Written by cbindgen from crates/capi; do not edit. docs/guides/c.md has examples.
 *
 * A filter is freed with petal_free. Any number of threads may query one filter at the same time; a function that changes
 * a filter needs it alone. No function keeps a pointer after it returns, except petal_from_bytes. Pointers to errors,
 * secrets and metadata may be NULL. Text is UTF-8 and ends with a zero byte. */

#ifndef PETAL_H
#define PETAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Bytes of a message, with the zero byte.
#define PETAL_MESSAGE 256

// Bytes of a secret.
#define PETAL_SECRET_BYTES 16

// What went wrong.
typedef enum {
  // Nothing.
  PETAL_OK = 0,
  // An argument is out of range or missing, or the specification of a filter cannot be read.
  PETAL_INVALID = 1,
  // The bytes are no filter file of a known format.
  PETAL_FOREIGN = 2,
  // The file has a version or type that this library does not support.
  PETAL_VERSION = 3,
  // The file is damaged; `offset` says where.
  PETAL_DAMAGED = 4,
  // The secret of the filter is missing or wrong.
  PETAL_SECRET = 5,
  // Reading or writing a file failed.
  PETAL_IO = 6,
  // Memory is missing.
  PETAL_MEMORY = 7,
  // The filter takes no more keys.
  PETAL_FULL = 8,
  // Filters of this type cannot do this.
  PETAL_UNSUPPORTED = 9,
  // Two filters differ and cannot be combined.
  PETAL_INCOMPATIBLE = 10,
  // The same keys are members and non-members of a cascade.
  PETAL_CONTRADICTION = 11,
  // A fault of the library.
  PETAL_INTERNAL = 12,
} petal_code;

// A filter: petal's own, or that of another program.
typedef struct petal_filter petal_filter;

// An error: its code, where it is, and a line of text that says what to do.
typedef struct {
  // A value of `petal_code`.
  int32_t code;
  // The offset of the damage in the file; 0 for other errors.
  uint64_t offset;
  // The message, cut to its space.
  char message[PETAL_MESSAGE];
} petal_error;

// Many keys in one piece of memory, one after the other: each as long as its length, or all `width` bytes long.
typedef struct {
  // The bytes of all keys; may be NULL if they have none.
  const void *data;
  // The length of each key in bytes; NULL if all are `width` bytes long.
  const size_t *lengths;
  // The length of all keys in bytes; not used if there are lengths.
  size_t width;
  // The number of keys.
  size_t count;
} petal_keys;

// The numbers of a filter as it is now.
typedef struct {
  // The number of keys that it was planned for; 0 without a plan.
  uint64_t capacity;
  // The number of inserts that were new.
  uint64_t inserted;
  // The size of its data in bytes.
  uint64_t size_bytes;
  // Its memory in bytes, without pages of a file.
  uint64_t memory_bytes;
  // The false-positive rate that it was planned for; 0 without a plan.
  double target_fpr;
  // The false-positive rate by its data.
  double estimated_fpr;
  // The number of distinct keys by its data.
  double estimated_keys;
  // The share of bits, counters or slots in use.
  double fill_ratio;
} petal_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library: "0.1.0".
const char *petal_version(void);

// Makes an empty filter of a specification: a type, then fields, such as "bloom capacity=1e6 fpr=0.001". Types that are
// built from all their keys at once are made by petal_build_from_keys.
//
// secret: 16 bytes, or NULL. Files of the filter do not contain it, and are opened with it only.
//
// Returns NULL after an error. The caller frees the filter.
petal_filter *petal_build(const char *spec,
                          const uint8_t *secret,
                          petal_error *error);

// Builds a filter of all its keys: "static fpr=0.001", "static-fuse fpr=0.001", "cascade fpr=0.01", or any other type.
//
// others: the non-members of a cascade, which it never contains; NULL for other types.
//
// Returns NULL after an error. The caller frees the filter. Memory: 16 bytes per key, and up to 80 per member of a
// cascade.
petal_filter *petal_build_from_keys(const char *spec,
                                    const uint8_t *secret,
                                    const petal_keys *members,
                                    const petal_keys *others,
                                    petal_error *error);

// Opens a file: one of petal is mapped and shares its pages with other processes, one of another program is read. Only
// the header of a mapped file is checked: see petal_verify.
//
// No process may change the file while the filter exists. Replacing it, as petal_save does, is no change.
//
// Returns NULL after an error. The caller frees the filter.
petal_filter *petal_open(const char *path,
                         const uint8_t *secret,
                         petal_error *error);

// Takes the bytes of a file of petal or of another program, and checks all of them. Bytes of petal that begin at a
// multiple of 64 are not copied: they must stay as they are until the filter is freed.
//
// Returns NULL after an error. The caller frees the filter.
petal_filter *petal_from_bytes(const void *data,
                               size_t length,
                               const uint8_t *secret,
                               petal_error *error);

// Copies a filter to memory of its own, where it can be changed.
//
// Returns NULL after an error. The caller frees the copy.
petal_filter *petal_copy(const petal_filter *filter, petal_error *error);

// Frees a filter; NULL is ignored.
void petal_free(petal_filter *filter);

// Returns 0 if the key was certainly not inserted, 1 if it may have been, and -1, which is no "no", if the filter or the
// key is NULL or the key cannot be one of this filter.
int32_t petal_contains(const petal_filter *filter,
                       const void *key,
                       size_t length);

// petal_contains for an integer, whose key is its eight bytes, the lowest first.
int32_t petal_contains_u64(const petal_filter *filter, uint64_t key);

// Looks up many keys; faster than one by one, most of all in a filter that is larger than the processor's caches.
//
// found: a bool for each key, true if it may have been inserted; after an error also true if it was not looked up.
//
// Returns 0, or -1 after an error.
int32_t petal_contains_batch(const petal_filter *filter,
                             const petal_keys *keys,
                             bool *found,
                             petal_error *error);

// Inserts a key. Returns 1 if it certainly was not in the filter, 0 if it may have been, and -1 after an error.
int32_t petal_insert(petal_filter *filter,
                     const void *key,
                     size_t length,
                     petal_error *error);

// Inserts many keys.
//
// new_keys: NULL, or a bool for each key: whether it certainly was not in the filter.
//
// Returns 0, or -1 after an error: keys before the one that failed are then in the filter.
int32_t petal_insert_batch(petal_filter *filter,
                           const petal_keys *keys,
                           bool *new_keys,
                           petal_error *error);

// Removes a key from a filter that supports it: "counting", "counting-classic", "quotient", "vector-quotient". Remove
// only keys that were inserted.
//
// Returns 1 if a key was removed, 0 if it certainly was not in the filter, and -1 after an error.
int32_t petal_remove(petal_filter *filter,
                     const void *key,
                     size_t length,
                     petal_error *error);

// Moves the window of a "windowed" filter that forgets with time to `now`, in the ticks of its window. An earlier time
// changes nothing. The window moves only by this function.
//
// Returns 0, or -1 after an error.
int32_t petal_advance(petal_filter *filter,
                      uint64_t now,
                      petal_error *error);

// Adds all keys of another filter with the same type, layout and hash.
//
// Returns 0, or -1 after an error: the filter is then unchanged.
int32_t petal_union(petal_filter *filter, const petal_filter *other, petal_error *error);

// Returns the name of the filter's type, such as "bloom", or of another program's format; "" for NULL. The text need
// not be freed.
const char *petal_type(const petal_filter *filter);

// Returns the metadata of the file that the filter is from, which belong to the filter; "" if there are none.
const char *petal_metadata(const petal_filter *filter);

// Writes the numbers of a filter of petal to `stats`. Reads the whole filter.
//
// Returns 0, or -1 after an error.
int32_t petal_statistics(const petal_filter *filter, petal_stats *stats, petal_error *error);

// Checks every byte of the file that the filter is from.
//
// Returns 0, or -1 if anything in it is damaged.
int32_t petal_verify(const petal_filter *filter, petal_error *error);

// Writes the filter to a file, which replaces an earlier one only when it is complete.
//
// metadata: text for the file, at most 1 MiB, e.g. JSON; NULL keeps that of the filter.
//
// Returns 0, or -1 after an error.
int32_t petal_save(const petal_filter *filter,
                   const char *path,
                   const char *metadata,
                   petal_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PETAL_H */
