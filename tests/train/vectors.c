/* SPDX-License-Identifier: Apache-2.0 */
#include "vectors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 8, BYTES_MAX = 1 << 18, NAME_MAX_BYTES = 32, ARRAYS_MAX = 128 };

typedef struct vectors_file {
    char name[NAME_MAX_BYTES];
    char *text;
} vectors_file;

static vectors_file files[FILES_MAX];
static void *arrays[ARRAYS_MAX]; /* that were given out */
static size_t array_count;

static _Noreturn void give_up(const char *name, const char *why)
{
    fprintf(stderr, "vector %s: %s\n", name, why);
    abort();
}

static char *read_file(const char *name)
{
    char path[512];
    char *text = calloc(1, BYTES_MAX);
    snprintf(path, sizeof path, "%s/%s.txt", TEST_VECTORS, name);
    FILE *file = fopen(path, "r");
    if (file == NULL || text == NULL || fread(text, 1, BYTES_MAX - 1, file) == BYTES_MAX - 1)
        give_up(path, "cannot be read");
    fclose(file);
    return text;
}

/* The text of the file that a name begins with. */
static const char *file_of(const char *name)
{
    char file[NAME_MAX_BYTES];
    snprintf(file, sizeof file, "%.*s", (int)strcspn(name, "/"), name);
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (files[i].text == NULL) {
            strcpy(files[i].name, file);
            files[i].text = read_file(file);
        }
        if (strcmp(files[i].name, file) == 0)
            return files[i].text;
    }
    give_up(name, "too many files");
}

const char *vector_row(const char *name, size_t nth)
{
    const char *array = strchr(name, '/') + 1;
    const size_t length = strlen(array);
    const char *line = file_of(name);
    while (line != NULL) {
        line += *line == '\n';
        if (strncmp(line, array, length) == 0 && line[length] == ':' && nth-- == 0)
            return line + length + 1;
        line = strchr(line, '\n');
    }
    return NULL;
}

static const char *find(const char *name)
{
    const char *text = vector_row(name, 0);
    if (text == NULL)
        give_up(name, "is not there");
    return text;
}

/* The next value of the array, or false at its end: a line that begins without a blank. */
static bool next_value(const char **text, double *value)
{
    while (**text == ' ' || (**text == '\n' && (*text)[1] == ' '))
        ++*text;
    char *end;
    *value = strtod(*text, &end);
    const bool is_there = **text != '\n' && end != *text;
    *text = end;
    return is_there;
}

size_t vector_count(const char *name)
{
    const char *text = find(name);
    size_t count = 0;
    for (double value; next_value(&text, &value);)
        count++;
    if (*text != '\n' && *text != '\0')
        give_up(name, "has a value that is no number");
    return count;
}

/* Room for the array's values, after its count was compared. */
static void *make_room(const char *name, size_t count, size_t *found, size_t size)
{
    *found = vector_count(name);
    if (*found == 0 || (count != 0 && *found != count))
        give_up(name, "has another number of values");
    void *room = calloc(*found, size);
    if (room == NULL || array_count == ARRAYS_MAX)
        give_up(name, "has no room");
    return arrays[array_count++] = room;
}

const double *vector_doubles(const char *name, size_t count)
{
    const char *text = find(name);
    double *values = make_room(name, count, &count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        next_value(&text, &values[i]);
    return values;
}

const float *vector_floats(const char *name, size_t count)
{
    const char *text = find(name);
    float *values = make_room(name, count, &count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        double value;
        next_value(&text, &value);
        values[i] = (float)value;
    }
    return values;
}

double vector_number(const char *name)
{
    return *vector_doubles(name, 1);
}

uint64_t vector_hash(const char *name)
{
    const char *text = find(name);
    char *end;
    text += strspn(text, " ");
    const uint64_t hash = strtoull(text, &end, 16);
    if (*text == '\n' || end == text || *end != '\n')
        give_up(name, "is no hash");
    return hash;
}
