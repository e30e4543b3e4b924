/* SPDX-License-Identifier: Apache-2.0
 * Reads the IDX format: two zero bytes, the type 8 (unsigned byte), the number of dimensions, each
 * dimension as a big-endian 32-bit number, and the elements. All files are read through zlib, which
 * also reads files that are not compressed. */
#include "idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "errors.h"

/* Deflate expands data at most EXPANSION_MAX times, so a header that needs more is wrong. A file
 * that expands more than EXPANSION_LARGE times to more than LARGE bytes is refused, because it is
 * not a data set and would fill the memory of every rank. */
enum { EXPANSION_MAX = 1032, EXPANSION_LARGE = 100, LARGE = 64 << 20 };

/* Limit of an array: more than any data set here has, and far less than a machine's memory. */
#define BYTES_MAX ((size_t)4 << 30)

typedef struct idx_file {
    const char *path;
    gzFile stream;
    size_t disk_bytes;
} idx_file;

static ring_status stream_fail(const idx_file *file)
{
    int code;
    const char *text = gzerror(file->stream, &code);
    if (code == Z_ERRNO)
        return train_fail(RING_ERR_SYSTEM, "%s: %s", file->path, strerror(errno));
    if (code == Z_OK || code == Z_BUF_ERROR)
        return train_fail(RING_ERR_CONFIG, "%s: the file ends too early; download it again",
                          file->path);
    const char *cause = strstr(text,
                               ": "); /* after the file's name, with which zlib begins the text */
    return train_fail(RING_ERR_CONFIG, "%s: not a valid gzip file (%s); download it again",
                      file->path, cause != NULL ? cause + 2 : text);
}

static ring_status read_exactly(const idx_file *file, uint8_t *out, size_t bytes)
{
    while (bytes > 0) {
        const unsigned part = bytes < (1U << 30) ? (unsigned)bytes : 1U << 30;
        const int got = gzread(file->stream, out, part);
        if (got <= 0)
            return stream_fail(file);
        out += got;
        bytes -= (size_t)got;
    }
    return RING_OK;
}

static ring_status read_header(const idx_file *file, int dims, idx_array *array)
{
    uint8_t head[4 + 4 * IDX_DIMS_MAX];
    RING_TRY(read_exactly(file, head, 4 + 4 * (size_t)dims));
    if (head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] != dims)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the file begins with %02x%02x%02x%02x, but an IDX file of bytes with %d "
            "dimensions begins with 000008%02x",
            file->path, head[0], head[1], head[2], head[3], dims, dims);
    array->bytes = 1;
    for (int d = 0; d < dims; d++) {
        const uint8_t *at = head + 4 + (ptrdiff_t)4 * d;
        array->shape[d] = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
        if (__builtin_mul_overflow(array->bytes, array->shape[d], &array->bytes))
            array->bytes = SIZE_MAX;
    }
    return RING_OK;
}

static ring_status check_size(const idx_file *file, const idx_array *array)
{
    if (array->bytes == 0)
        return train_fail(RING_ERR_CONFIG, "%s: by its header, the file has no elements",
                          file->path);
    const size_t possible = file->disk_bytes > BYTES_MAX ? BYTES_MAX
                                                         : file->disk_bytes * EXPANSION_MAX;
    if (array->bytes > BYTES_MAX || array->bytes > possible)
        return train_fail(RING_ERR_CONFIG,
                          "%s: the header states more elements than a file of %zu bytes can have",
                          file->path, file->disk_bytes);
    if (array->bytes > LARGE && array->bytes / EXPANSION_LARGE > file->disk_bytes)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the file would expand from %zu bytes to %zu, more than any known data "
            "set; if it is a data set, unpack the file first",
            file->path, file->disk_bytes, array->bytes);
    return RING_OK;
}

/* Reads one byte past the end, which makes zlib check its checksum. */
static ring_status check_end(const idx_file *file)
{
    uint8_t extra;
    int code;
    const int got = gzread(file->stream, &extra, 1);
    gzerror(file->stream, &code);
    if (got < 0 || code != Z_OK)
        return stream_fail(file);
    if (got > 0)
        return train_fail(RING_ERR_CONFIG, "%s: the file is longer than its header says",
                          file->path);
    return RING_OK;
}

ring_status idx_allocate(idx_array *array)
{
    const size_t page = (size_t)2 << 20, bytes = array->bytes;
    const bool large = bytes >= 2 * page;
    array->data = large ? aligned_alloc(page, (bytes + page - 1) / page * page)
                        : malloc(bytes > 0 ? bytes : 1);
    if (array->data == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for samples of %zu bytes", bytes);
    if (large)
        (void)madvise(array->data, bytes, MADV_HUGEPAGE);
    return RING_OK;
}

static ring_status read_body(const idx_file *file, int dims, idx_array *array)
{
    RING_TRY(read_header(file, dims, array));
    RING_TRY(check_size(file, array));
    RING_TRY(idx_allocate(array));
    RING_TRY(read_exactly(file, array->data, array->bytes));
    return check_end(file);
}

static ring_status open_stream(const char *path, idx_file *file)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
    if (fd < 0 || fstat(fd, &info) != 0) {
        const int cause = errno;
        if (fd >= 0)
            close(fd);
        return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(cause));
    }
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        return train_fail(RING_ERR_CONFIG, "%s: not a regular file", path);
    }
    *file = (idx_file){.path = path,
                       .stream = gzdopen(fd, "rb"),
                       .disk_bytes = (size_t)info.st_size};
    if (file->stream == NULL) {
        close(fd);
        return train_fail(RING_ERR_MEMORY, "%s: no memory to read it", path);
    }
    gzbuffer(file->stream, 1U << 17);
    return RING_OK;
}

ring_status idx_read(const char *path, int dims, idx_array *array)
{
    idx_file file;
    memset(array, 0, sizeof *array);
    RING_TRY(open_stream(path, &file));
    const ring_status status = read_body(&file, dims, array);
    gzclose_r(file.stream);
    if (status != RING_OK)
        idx_free(array);
    return status;
}

void idx_free(idx_array *array)
{
    free(array->data);
    array->data = NULL;
}
