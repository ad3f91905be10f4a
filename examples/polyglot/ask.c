/* Prints the lines of the input that a filter file may contain. */
#include <petal.h>
#include <stdio.h>
#include <sys/types.h>

int main(int count, char **args) {
    petal_error error;
    petal_filter *filter = count == 2 ? petal_open(args[1], NULL, &error) : NULL;
    if (filter == NULL) {
        fprintf(stderr, "%s\n", count == 2 ? error.message : "usage: ask FILTER");
        return 1;
    }
    char *line = NULL;
    size_t space = 0;
    for (ssize_t length; (length = getline(&line, &space, stdin)) > 0;) {
        length -= line[length - 1] == '\n';
        if (petal_contains(filter, line, (size_t)length) == 1) {
            printf("%.*s\n", (int)length, line);
        }
    }
    free(line);
    petal_free(filter);
    return 0;
}
