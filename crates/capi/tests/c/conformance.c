/* Answers of a file, and files that must be refused: see tests/programs.rs.
 *
 * conformance FILE SECRET|- ANSWERS: each line has the hexadecimal digits of a key, "." if it has none, and 0 or 1.
 * conformance - - HOSTILE: files, each after its length as four bytes. */
#include <petal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t unhex(const char *digits, uint8_t *bytes) {
    size_t length = 0;
    unsigned byte;
    for (; sscanf(digits + 2 * length, "%2x", &byte) == 1; length++) {
        bytes[length] = (uint8_t)byte;
    }
    return length;
}

static int refuse_all(FILE *list) {
    uint8_t length[4];
    int count = 0;
    for (; fread(length, 1, 4, list) == 4; count++) {
        size_t bytes = length[0] | length[1] << 8 | length[2] << 16 | (size_t)length[3] << 24;
        uint8_t *file = malloc(bytes + 1);
        petal_error error;
        if (file == NULL || fread(file, 1, bytes, list) != bytes) {
            return 1;
        }
        petal_filter *filter = petal_from_bytes(file, bytes, NULL, &error);
        if (filter != NULL || error.message[0] == '\0') {
            fprintf(stderr, "file %d is accepted\n", count);
            return 1;
        }
        free(file);
    }
    printf("%d\n", count);
    return 0;
}

int main(int count, char **arguments) {
    static char line[4096];
    static uint8_t key[4096];
    uint8_t secret[16];
    petal_error error;
    FILE *list = count == 4 ? fopen(arguments[3], "rb") : NULL;
    if (list == NULL) {
        return 2;
    }
    if (strcmp(arguments[1], "-") == 0) {
        return refuse_all(list);
    }
    int has_secret = unhex(arguments[2], secret) == 16;
    petal_filter *filter = petal_open(arguments[1], has_secret ? secret : NULL, &error);
    if (filter == NULL || petal_verify(filter, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int answers = 0;
    for (; fgets(line, sizeof line, list) != NULL; answers++) {
        char *space = strchr(line, ' ');
        size_t length = unhex(line, key);
        if (petal_contains(filter, key, length) != space[1] - '0') {
            fprintf(stderr, "wrong answer: %s", line);
            return 1;
        }
    }
    printf("%d\n", answers);
    petal_free(filter);
    fclose(list);
    return 0;
}
