/* SPDX-License-Identifier: Apache-2.0
 * Writes events to a file, and keeps the errno of the first failed write, because later calls may
 * overwrite errno, and a stream does not record why a write failed. */
#include "sink_file.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "errors.h"

static void keep_error(sink_file *file, bool failed)
{
    if (failed && file->error == 0)
        file->error = errno;
}

ring_status sink_file_open(sink_file *file, const char *what, const char *path, bool add)
{
    *file = (sink_file){.what = what};
    snprintf(file->path, sizeof file->path, "%s", path);
    file->stream = output_open_new(path, add);
    if (file->stream == NULL && errno == EEXIST)
        return train_fail(RING_ERR_SYSTEM, "%s %s already exists; %s", what, path,
                          strcmp(what, "--metrics") == 0
                              ? "give another name, remove it, or add --append-metrics"
                              : "give another name or remove it");
    if (file->stream == NULL)
        return train_fail(RING_ERR_SYSTEM, "%s %s: %s", what, path, strerror(errno));
    setvbuf(file->stream, NULL, _IOLBF, BUFSIZ);
    return RING_OK;
}

ring_status sink_file_close(sink_file *file)
{
    if (file->stream == NULL)
        return RING_OK;
    keep_error(file, fclose(file->stream) != 0);
    file->stream = NULL;
    if (file->error == 0)
        return RING_OK;
    return train_fail(RING_ERR_SYSTEM, "%s %s: %s", file->what, file->path, strerror(file->error));
}

void sink_file_print(sink_file *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep_error(file, vfprintf(file->stream, format, args) < 0);
    va_end(args);
}

void sink_file_quote(sink_file *file, const char *text)
{
    sink_file_print(file, "\"");
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ')
            sink_file_print(file, "\\u%04x", (unsigned)*text);
        else
            sink_file_print(file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    sink_file_print(file, "\"");
}

void sink_file_write(sink_file *file, const void *data, size_t bytes)
{
    keep_error(file, fwrite(data, 1, bytes, file->stream) != bytes);
    keep_error(file, fflush(file->stream) != 0);
}

/* ---- Folders ------------------------------------------------------------------------------- */

/* Creates a folder if it does not exist. @return false, and sets errno, if that fails. */
static bool make_folder(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return true;
    const int cause = errno;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return true;
    errno = cause;
    return false;
}

/* Creates all folders of the path. @return false, and sets errno, if that fails. */
static bool make_folders(char *path)
{
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        const bool good = make_folder(path);
        *at = '/';
        if (!good)
            return false;
    }
    return make_folder(path);
}

ring_status sink_folder_create(const char *what, const char *output_path, const char *job_name,
                               char folder[OUTPUT_PATH_MAX])
{
    const char *between = *output_path != '\0' ? "/" : "";
    if (snprintf(folder, OUTPUT_PATH_MAX, "%s%s%s", output_path, between, job_name) >=
        OUTPUT_PATH_MAX)
        return train_fail(RING_ERR_ARGUMENT,
                          "%s.output_path: the path is too long; shorten it or job_name", what);
    if (!make_folders(folder))
        return train_fail(RING_ERR_SYSTEM, "%s %s: %s", what, folder, strerror(errno));
    return RING_OK;
}
