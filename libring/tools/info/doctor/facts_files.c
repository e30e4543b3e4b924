/* SPDX-License-Identifier: Apache-2.0
 * Folders, lines and numbers. */
#include "facts_files.h"

#include "sysfs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

/* Below the root. @return out; "" if it is too long. */
__attribute__((format(printf, 3, 0))) static const char *
path_of(const facts *f, char out[PATH_BYTES], const char *format, va_list args)
{
    char inner[PATH_BYTES];
    vsnprintf(inner, sizeof inner, format, args);
    return text_format(out, PATH_BYTES, "%s%s", f->root, inner) ? out : "";
}

void facts_each(const facts *f, void (*take)(const facts *f, const char *name, void *context),
                void *context, const char *folder_format, ...)
{
    char path[PATH_BYTES];
    struct dirent **names = NULL;
    va_list args;
    va_start(args, folder_format);
    const int count = scandir(path_of(f, path, folder_format, args), &names, NULL, versionsort);
    va_end(args);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            take(f, names[i]->d_name, context);
        free(names[i]);
    }
    free(names);
}

bool facts_line(const facts *f, char *out, size_t size, const char *path_format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, path_format);
    const bool read = sysfs_line(out, size, "%s", path_of(f, path, path_format, args));
    va_end(args);
    return read;
}

double facts_number(const facts *f, const char *path_format, ...)
{
    char path[PATH_BYTES], line[64], *end;
    va_list args;
    va_start(args, path_format);
    sysfs_line(line, sizeof line, "%s", path_of(f, path, path_format, args));
    va_end(args);
    const double value = strtod(line, &end);
    return end == line ? -1 : value;
}

bool facts_find_line(const facts *f, bool (*take)(char *line, void *context), void *context,
                     const char *path_format, ...)
{
    char path[PATH_BYTES], line[1024];
    bool found = false;
    va_list args;
    va_start(args, path_format);
    FILE *file = fopen(path_of(f, path, path_format, args), "re");
    va_end(args);
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = take(line, context);
    if (file != NULL)
        fclose(file);
    return found;
}

bool facts_exists(const facts *f, const char *path)
{
    char full[PATH_BYTES];
    return text_format(full, sizeof full, "%s%s", f->root, path) && access(full, F_OK) == 0;
}
