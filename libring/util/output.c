/* SPDX-License-Identifier: Apache-2.0
 * Creates files under a temporary name and renames them when they are complete. A stream remembers
 * that an earlier write failed, but not why, so the cause of such a failure is reported as EIO. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files --------------------------------------------------------------------------------- */

static bool is_open_already(const char *path)
{
    static const char *const beginnings[] = {"/dev/std", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(path, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* @return true for files that are written to directly: character devices, and FIFOs of this user.
 * The owner of another FIFO could read the data. */
static bool is_stream(const struct stat *info)
{
    return S_ISCHR(info->st_mode) || (S_ISFIFO(info->st_mode) && info->st_uid == geteuid());
}

/* @return a descriptor, or -1 and errno. Another file may have replaced the stream since it was
 * checked: this is an error (EACCES). */
static int open_stream(const char *path)
{
    struct stat info;
    const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &info) == 0 && is_stream(&info)))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}

/* @param[out] partial  the temporary name of a new file; "" if no file has to be renamed.
 * @return its descriptor, or -1 and errno. */
static int create(const char *path, char partial[OUTPUT_PATH_MAX])
{
    struct stat info;
    *partial = '\0';
    if (is_open_already(path))
        return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    const bool exists = lstat(path, &info) == 0;
    if (exists && is_stream(&info))
        return open_stream(path);
    if (exists && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (snprintf(partial, OUTPUT_PATH_MAX, "%s.XXXXXX", path) >= OUTPUT_PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkostemp(partial, O_NOFOLLOW | O_CLOEXEC); /* mkostemp() implies O_EXCL and mode 0600 */
}

/* Removes the temporary file and preserves the errno of the failure. */
static void remove_partial(const char *partial)
{
    const int cause = errno;
    if (*partial != '\0')
        unlink(partial);
    errno = cause;
}

/* Renames the temporary file to its final path. @return false, and errno, if that fails. */
static bool put_in_place(const char *partial, const char *path)
{
    if (*partial == '\0' || rename(partial, path) == 0)
        return true;
    remove_partial(partial);
    return false;
}

/* @return a stream that owns the descriptor; NULL, and errno, if there is none. */
static FILE *stream_of(int fd)
{
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (stream == NULL && fd >= 0)
        close(fd);
    return stream;
}

bool output_begin(output_file *file, const char *path)
{
    const int fd = create(path, file->partial); /* fails if the name is too long */
    snprintf(file->path, sizeof file->path, "%s", path);
    file->stream = stream_of(fd);
    if (file->stream == NULL && fd >= 0)
        remove_partial(file->partial);
    return file->stream != NULL;
}

bool output_finish(output_file *file)
{
    const bool sound = !ferror(file->stream);
    bool good = fflush(file->stream) == 0 && sound;
    if (!sound)
        errno = EIO; /* an earlier write failed */
    good = good && (*file->partial == '\0' || fsync(fileno(file->stream)) == 0);
    const int cause = errno;
    const bool closed = fclose(file->stream) == 0;
    file->stream = NULL;
    if (good && closed)
        return put_in_place(file->partial, file->path);
    errno = good ? errno : cause;
    remove_partial(file->partial);
    return false;
}

void output_discard(output_file *file)
{
    if (file->stream == NULL)
        return;
    fclose(file->stream);
    file->stream = NULL;
    remove_partial(file->partial);
}

int output_create(const char *path)
{
    char partial[OUTPUT_PATH_MAX];
    const int fd = create(path, partial);
    if (fd < 0 || put_in_place(partial, path))
        return fd;
    const int cause = errno;
    close(fd);
    errno = cause;
    return -1;
}

FILE *output_open(const char *path)
{
    return stream_of(output_create(path));
}

/* @return 0 if @p path may be written to, else the errno of the reason why not. */
static int why_protected(const char *path, bool add)
{
    struct stat info;
    if (is_open_already(path) || lstat(path, &info) != 0 || is_stream(&info))
        return 0;
    if (S_ISDIR(info.st_mode))
        return EISDIR;
    if (!S_ISREG(info.st_mode) || (!add && info.st_size > 0))
        return EEXIST;
    return info.st_uid == geteuid() ? 0 : EACCES;
}

FILE *output_open_new(const char *path, bool add)
{
    struct stat info;
    errno = why_protected(path, add);
    if (errno != 0)
        return NULL;
    if (!add || lstat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return output_open(path);
    return stream_of(open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
}

/* ---- Checks that everything was written ------------------------------------------------------ */

static int status_of_loss;

/* Prints a message unless all bytes were written. @return @p all. */
static bool report_loss(bool all, const char *name)
{
    if (!all)
        fprintf(stderr, "%s: %s: not all of it could be written; is the disk full?\n",
                program_invocation_short_name, name);
    return all;
}

static void check(void)
{
    const bool flushed = fflush(stdout) == 0;
    if (!report_loss(flushed && !ferror(stdout), "standard output"))
        _exit(status_of_loss);
}

void output_check_at_exit(int status)
{
    status_of_loss = status;
    atexit(check);
}

bool output_close(FILE *file, const char *name)
{
    if (file == NULL)
        return true;
    const bool sound = !ferror(file);
    return report_loss(fclose(file) == 0 && sound, name);
}
