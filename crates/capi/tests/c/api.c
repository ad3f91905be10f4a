/* Every function of petal.h, its errors, and eight threads. */
#include <petal.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int ok, const char *what, int line) {
    if (!ok) {
        fprintf(stderr, "line %d: %s\n", line, what);
        exit(1);
    }
}
#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)

#ifndef FOREIGN
#define FOREIGN ""
#endif

static petal_error error;

static int has(const petal_filter *filter, const char *key) {
    return petal_contains(filter, key, strlen(key));
}

static int fails(int32_t code, const char *text) {
    if (error.code != (int32_t)code || strstr(error.message, text) == NULL) {
        fprintf(stderr, "code %d: %s\n", (int)error.code, error.message);
        return 0;
    }
    return 1;
}

static void *query(void *argument) {
    const petal_filter *filter = argument;
    for (uint64_t key = 0; key < 200000; key++) {
        if (petal_contains_u64(filter, key % 1000) != 1) {
            return argument;
        }
    }
    return NULL;
}

static void insert_query_and_remove(void) {
    petal_filter *filter = petal_build("counting capacity=1e3 fpr=0.001", NULL, &error);
    CHECK(filter != NULL && error.code == PETAL_OK && strcmp(petal_type(filter), "counting") == 0);
    CHECK(petal_insert(filter, "one", 3, &error) == 1 && petal_insert(filter, "one", 3, &error) == 0);
    CHECK(has(filter, "one") == 1 && has(filter, "two") == 0);
    CHECK(petal_remove(filter, "one", 3, &error) == 1 && has(filter, "one") == 1);
    CHECK(petal_remove(filter, "one", 3, &error) == 1 && has(filter, "one") == 0);
    CHECK(petal_remove(filter, "one", 3, &error) == 0);
    CHECK(petal_insert(filter, NULL, 0, &error) == 1 && petal_contains(filter, NULL, 0) == 1);
    petal_stats stats;
    CHECK(petal_statistics(filter, &stats, &error) == 0);
    CHECK(stats.capacity == 1000 && stats.target_fpr == 0.001 && stats.inserted == 1);
    petal_free(filter);
}

static void batches_files_and_copies(const char *path) {
    petal_filter *filter = petal_build("bloom capacity=1000 fpr=0.001", NULL, &error);
    uint8_t numbers[8 * 1000];
    for (size_t at = 0; at < sizeof numbers; at++) {
        numbers[at] = (uint8_t)(at / 8 >> (at % 8 * 8 > 15 ? 16 : at % 8 * 8));
    }
    petal_keys keys = {numbers, NULL, 8, 1000};
    bool found[1000], is_new[1000];
    CHECK(petal_insert_batch(filter, &keys, is_new, &error) == 0 && is_new[0] && is_new[999]);
    CHECK(petal_contains_batch(filter, &keys, found, &error) == 0);
    for (uint64_t key = 0; key < 1000; key++) {
        CHECK(found[key] && petal_contains_u64(filter, key) == 1);
    }
    size_t lengths[] = {3, 0, 5};
    petal_keys texts = {"onethree", lengths, 0, 3};
    CHECK(petal_insert_batch(filter, &texts, NULL, &error) == 0);
    CHECK(has(filter, "one") == 1 && has(filter, "three") == 1 && has(filter, "") == 1);

    CHECK(petal_save(filter, path, "{\"source\":\"test\"}", &error) == 0);
    petal_filter *mapped = petal_open(path, NULL, &error);
    CHECK(mapped != NULL && petal_verify(mapped, &error) == 0);
    CHECK(strcmp(petal_metadata(mapped), "{\"source\":\"test\"}") == 0);
    CHECK(petal_insert(mapped, "four", 4, &error) == -1 && fails(PETAL_UNSUPPORTED, "petal_copy"));
    petal_filter *copy = petal_copy(mapped, &error);
    CHECK(petal_insert(copy, "four", 4, &error) == 1 && has(copy, "four") == 1 && has(mapped, "four") == 0);
    CHECK(petal_union(filter, copy, &error) == 0 && has(filter, "four") == 1);
    CHECK(petal_union(filter, filter, &error) == 0);
    petal_filter *other = petal_build("bloom capacity=9 fpr=0.1", NULL, &error);
    CHECK(petal_union(filter, other, &error) == -1 && fails(PETAL_INCOMPATIBLE, ""));

    pthread_t threads[8];
    for (int at = 0; at < 8; at++) {
        CHECK(pthread_create(&threads[at], NULL, query, mapped) == 0);
    }
    for (int at = 0; at < 8; at++) {
        void *failed;
        CHECK(pthread_join(threads[at], &failed) == 0 && failed == NULL);
    }

    FILE *file = fopen(path, "rb");
    static union {
        uint64_t word;
        char bytes[1 << 16];
    } memory;
    size_t length = fread(memory.bytes, 1, sizeof memory.bytes, file);
    fclose(file);
    petal_filter *borrowed = petal_from_bytes(memory.bytes, length, NULL, &error);
    CHECK(borrowed != NULL && has(borrowed, "three") == 1);
    petal_free(borrowed);
    memmove(memory.bytes + 1, memory.bytes, length);
    borrowed = petal_from_bytes(memory.bytes + 1, length, NULL, &error);
    CHECK(borrowed != NULL && has(borrowed, "three") == 1);
    petal_free(borrowed);
    memory.bytes[length - 30] ^= 1;
    CHECK(petal_from_bytes(memory.bytes + 1, length, NULL, &error) == NULL && fails(PETAL_DAMAGED, ""));
    CHECK(petal_from_bytes("no filter", 9, NULL, &error) == NULL && fails(PETAL_FOREIGN, ""));
    petal_free(other);
    petal_free(copy);
    petal_free(mapped);
    petal_free(filter);
}

static void fixed_filters_and_secrets(const char *path) {
    size_t lengths[] = {3, 3}, other_lengths[] = {5};
    petal_keys members = {"onetwo", lengths, 0, 2}, others = {"three", other_lengths, 0, 1};
    const uint8_t secret[16] = "0123456789abcde", wrong[16] = "x";
    petal_filter *cascade = petal_build_from_keys("cascade fpr=0.01", secret, &members, &others, &error);
    CHECK(cascade != NULL && has(cascade, "one") == 1 && has(cascade, "two") == 1 && has(cascade, "three") == 0);
    CHECK(petal_insert(cascade, "x", 1, &error) == -1 && fails(PETAL_UNSUPPORTED, "never changes"));
    CHECK(petal_save(cascade, path, NULL, &error) == 0);
    CHECK(petal_open(path, NULL, &error) == NULL && fails(PETAL_SECRET, ""));
    CHECK(petal_open(path, wrong, &error) == NULL && fails(PETAL_SECRET, ""));
    petal_filter *again = petal_open(path, secret, &error);
    CHECK(again != NULL && has(again, "two") == 1 && has(again, "three") == 0);
    CHECK(petal_build_from_keys("cascade fpr=0.01", NULL, &members, &members, &error) == NULL);
    CHECK(fails(PETAL_CONTRADICTION, ""));
    petal_filter *fixed = petal_build_from_keys("static fpr=0.001", NULL, &members, NULL, &error);
    CHECK(fixed != NULL && has(fixed, "one") == 1);
    CHECK(petal_build_from_keys("static fpr=0.001", NULL, &members, &others, &error) == NULL);
    CHECK(fails(PETAL_UNSUPPORTED, "use a cascade"));
    petal_free(fixed);
    petal_free(again);
    petal_free(cascade);
}

static void windows_and_other_programs(const char *path) {
    petal_filter *shown = petal_build("windowed capacity=100 fpr=0.01 window=90", NULL, &error);
    CHECK(shown != NULL && petal_advance(shown, 1000, &error) == 0);
    CHECK(petal_insert(shown, "one", 3, &error) == 1 && has(shown, "one") == 1);
    CHECK(petal_advance(shown, 1080, &error) == 0 && has(shown, "one") == 1);
    CHECK(petal_advance(shown, 1130, &error) == 0 && has(shown, "one") == 0);
    petal_free(shown);
    petal_filter *bloom = petal_build("bloom capacity=9 fpr=0.1", NULL, &error);
    CHECK(petal_advance(bloom, 1, &error) == -1 && fails(PETAL_UNSUPPORTED, "no window"));
    petal_free(bloom);

    petal_filter *foreign = petal_open(FOREIGN, NULL, &error);
    CHECK(foreign != NULL && strcmp(petal_type(foreign), "dcso") == 0 && petal_verify(foreign, &error) == 0);
    petal_keys keys = {"a key?another key", (const size_t[]){6, 11}, 0, 2};
    bool found[2], is_new[2];
    CHECK(petal_contains_batch(foreign, &keys, found, &error) == 0 && !found[0] && !found[1]);
    CHECK(petal_insert_batch(foreign, &keys, is_new, &error) == 0 && is_new[0] && is_new[1]);
    CHECK(petal_contains_batch(foreign, &keys, found, &error) == 0 && found[0] && found[1]);
    CHECK(petal_save(foreign, path, "{}", &error) == -1 && fails(PETAL_UNSUPPORTED, "metadata"));
    CHECK(petal_save(foreign, path, NULL, &error) == 0);
    petal_filter *again = petal_open(path, NULL, &error);
    CHECK(again != NULL && has(again, "a key?") == 1);
    CHECK(petal_statistics(again, &(petal_stats){0}, &error) == -1 && fails(PETAL_UNSUPPORTED, ""));
    petal_free(again);
    petal_free(foreign);
}

static void wrong_arguments(void) {
    CHECK(petal_build("blom", NULL, &error) == NULL && fails(PETAL_INVALID, "expected one of bloom"));
    CHECK(petal_build("bloom capacity", NULL, &error) == NULL && fails(PETAL_INVALID, "FIELD=VALUE"));
    CHECK(petal_build("bloom capacity=-1", NULL, &error) == NULL && fails(PETAL_INVALID, "whole number"));
    CHECK(petal_build("bloom size=1", NULL, &error) == NULL && fails(PETAL_INVALID, "not a field"));
    CHECK(petal_build("bloom", NULL, &error) == NULL && fails(PETAL_INVALID, ""));
    CHECK(petal_build("static fpr=0.1", NULL, &error) == NULL && fails(PETAL_UNSUPPORTED, ""));
    const uint8_t secret[16] = {0};
    CHECK(petal_build("bloom capacity=9 fpr=0.1 seed=7", secret, &error) == NULL && fails(PETAL_INVALID, "seed"));
    petal_keys word = {"x", NULL, 1, 1};
    CHECK(petal_build_from_keys("static", NULL, &word, NULL, &error) == NULL && fails(PETAL_INVALID, "fpr"));
    CHECK(petal_build_from_keys("static fpr=0.1 bits=9", NULL, &word, NULL, &error) == NULL);
    petal_filter *of_bits = petal_build_from_keys("bloom bits=512 probes=5", NULL, &word, NULL, &error);
    CHECK(of_bits != NULL && has(of_bits, "x") == 1);
    petal_free(of_bits);
    CHECK(petal_build(NULL, NULL, &error) == NULL && fails(PETAL_INVALID, "NULL"));
    CHECK(petal_build("\xff", NULL, &error) == NULL && fails(PETAL_INVALID, "UTF-8"));
    CHECK(petal_build("bloom capacity=1e15 fpr=1e-9", NULL, &error) == NULL);
    CHECK(petal_build("blom", NULL, NULL) == NULL);
    CHECK(petal_open("/no/such/file", NULL, &error) == NULL && fails(PETAL_IO, ""));
    CHECK(petal_contains(NULL, "x", 1) == -1 && petal_contains_u64(NULL, 1) == -1);
    petal_filter *filter = petal_build("bloom capacity=9 fpr=0.1", NULL, NULL);
    CHECK(petal_contains(filter, NULL, 1) == -1);
    petal_keys endless = {"x", NULL, SIZE_MAX / 2, 4};
    bool found[4];
    CHECK(petal_contains_batch(filter, &endless, found, &error) == -1 && fails(PETAL_INVALID, "longer"));
    CHECK(petal_contains_batch(filter, NULL, found, &error) == -1 && fails(PETAL_INVALID, "NULL"));
    petal_keys one = {"x", NULL, 1, 1};
    CHECK(petal_contains_batch(filter, &one, NULL, &error) == -1 && fails(PETAL_INVALID, "NULL"));
    CHECK(petal_insert(NULL, "x", 1, &error) == -1 && petal_statistics(filter, NULL, &error) == -1);
    CHECK(petal_remove(filter, "x", 1, &error) == -1 && fails(PETAL_UNSUPPORTED, "deletes no keys"));
    CHECK(petal_save(filter, "/no/such/folder/f", NULL, &error) == -1 && fails(PETAL_IO, ""));
    CHECK(strcmp(petal_type(NULL), "") == 0 && strcmp(petal_metadata(NULL), "") == 0);
    CHECK(strchr(petal_version(), '.') != NULL);
    petal_free(filter);
    petal_free(NULL);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    insert_query_and_remove();
    batches_files_and_copies(arguments[1]);
    fixed_filters_and_secrets(arguments[1]);
    windows_and_other_programs(arguments[1]);
    wrong_arguments();
    return 0;
}
