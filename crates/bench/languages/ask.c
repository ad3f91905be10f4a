/* Times a filter in C: ask TYPE FOLDER. The type is that of a file of petal, or `libbloom`. Also compiles as C++.
 * Filters are in memory, as in the other languages, not mapped. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
#include <petal.hpp>
#include <optional>
static std::optional<petal::filter> filter;
static int has(const char *key, size_t length) { return filter->contains(std::string_view(key, length)); }
static int open_filter(const char *, const char *path) {
    filter = petal::filter::open(path).copy();
    return 0;
}
#else
#include <petal.h>
#ifdef LIBBLOOM
#include <bloom.h>
static struct bloom filter;
#define has(key, length) bloom_check(&filter, key, (int)(length))
#else
static petal_filter *filter;
#define has(key, length) petal_contains(filter, key, length)
static int open_filter(const char *type, const char *path) {
    (void)type;
    filter = petal_copy(petal_open(path, NULL, NULL), NULL);
    return filter == NULL;
}
#endif
#endif

enum { ROUNDS = 5 };

typedef struct {
    char *bytes;
    size_t count, *starts; /* and the end */
} keys;

static keys read_keys(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file), end = 0;
    rewind(file);
    keys all = {(char *)malloc(size), 0, (size_t *)malloc((size + 1) * sizeof(size_t))};
    if (fread(all.bytes, 1, size, file) != size) {
        exit(1);
    }
    fclose(file);
    all.starts[0] = 0;
    for (size_t at = 0; at < size; at++) {
        if (all.bytes[at] == '\n') {
            all.starts[++all.count] = end;
        } else {
            all.bytes[end++] = all.bytes[at];
        }
    }
    return all;
}

static int64_t cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int in_order(const void *one, const void *two) {
    double difference = *(const double *)one - *(const double *)two;
    return (difference > 0) - (difference < 0);
}

static void measure(const char *name, keys asked) {
    double times[ROUNDS];
    size_t found = 0;
    for (int round = -1; round < ROUNDS; round++) {
        found = 0;
        int64_t start = cpu_ns();
        for (size_t key = 0; key < asked.count; key++) {
            found += has(asked.bytes + asked.starts[key], asked.starts[key + 1] - asked.starts[key]) == 1;
        }
        int64_t end = cpu_ns();
        if (round >= 0) {
            times[round] = (double)(end - start) / (double)asked.count;
        }
    }
    qsort(times, ROUNDS, sizeof *times, in_order);
    printf("%s %.3f %zu\n", name, times[ROUNDS / 2], found);
}

int main(int count, char **args) {
    if (count != 3) {
        return 2;
    }
    keys present = read_keys(args[2], "present"), absent = read_keys(args[2], "absent");
#ifdef LIBBLOOM
    bloom_init(&filter, (int)present.count, 0.01);
    for (size_t key = 0; key < present.count; key++) {
        bloom_add(&filter, present.bytes + present.starts[key], (int)(present.starts[key + 1] - present.starts[key]));
    }
#else
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.petal", args[2], args[1]);
    if (open_filter(args[1], path) != 0) {
        return 1;
    }
#endif
    measure("present", present);
    measure("absent", absent);
    return 0;
}
