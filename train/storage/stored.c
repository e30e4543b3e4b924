/* SPDX-License-Identifier: Apache-2.0
 * Keeps one sorted list of the ranges in all files, and looks up tensors in this list. */
#include "stored.h"

#include <errno.h>
#include <fcntl.h>
#include <kernels.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "errors.h"
#include "numbers.h"

enum { CAST_BLOCK = 16384 /* elements that are converted at a time */ };

/* ---- Listing ------------------------------------------------------------------------------- */

static ring_status open_path(const char *path, int *fd)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    return *fd >= 0 ? RING_OK : train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
}

/* Splits "TENSOR@BEGIN" into the members of @p range. @param whole  the text is only a name */
static bool split_name(const char *text, bool whole, stored_range *range)
{
    long long begin = 0;
    const char *mark = whole ? text + strlen(text) : strrchr(text, '@');
    const size_t length = mark != NULL ? (size_t)(mark - text) : 0;
    if (length == 0 || length >= STORED_NAME_MAX ||
        (!whole && !number_whole(mark + 1, 0, INT64_MAX, &begin)))
        return false;
    memcpy(range->name, text, length);
    range->begin = (size_t)begin;
    return true;
}

static ring_status add_entries(stored_tensors *stored, int file, const safetensors_entry *entries,
                               int count, bool whole)
{
    stored_range *ranges = realloc(stored->ranges,
                                   (size_t)(stored->count + count + 1) * sizeof *ranges);
    if (ranges == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for the list of stored tensors");
    stored->ranges = ranges;
    for (int i = 0; i < count; i++) {
        stored_range *range = &ranges[stored->count];
        *range = (stored_range){.count = entries[i].count,
                                .type = entries[i].type,
                                .file = file,
                                .at = entries[i].at,
                                .dims = entries[i].dims};
        memcpy(range->shape, entries[i].shape, sizeof range->shape);
        if (!split_name(entries[i].name, whole, range))
            return train_fail(RING_ERR_SYSTEM, "%s: \"%s\" is not the name of a stored tensor",
                              stored->paths[file], entries[i].name);
        stored->count += range->count > 0;
    }
    return RING_OK;
}

static ring_status list_file(stored_tensors *stored, int file, bool whole)
{
    int fd, count;
    safetensors_entry *entries;
    RING_TRY(open_path(stored->paths[file], &fd));
    ring_status status = safetensors_read(stored->paths[file], fd, &entries, &count);
    close(fd);
    if (status == RING_OK)
        status = add_entries(stored, file, entries, count, whole);
    free(entries);
    return status;
}

static int by_name_and_begin(const void *a, const void *b)
{
    const stored_range *first = a, *second = b;
    const int order = strcmp(first->name, second->name);
    if (order != 0)
        return order;
    return (first->begin > second->begin) - (first->begin < second->begin);
}

/* Checks that the ranges of each tensor begin with its first element and leave no gaps. */
static ring_status check_ranges(const stored_tensors *stored)
{
    size_t end = 0;
    for (int i = 0; i < stored->count; i++) {
        const stored_range *range = &stored->ranges[i];
        if (i == 0 || strcmp(range->name, range[-1].name) != 0)
            end = 0;
        if (range->begin != end || __builtin_add_overflow(end, range->count, &end))
            return train_fail(RING_ERR_SYSTEM, "%s: the ranges of %s overlap or leave a gap",
                              stored->paths[range->file], range->name);
    }
    return RING_OK;
}

static ring_status copy_paths(stored_tensors *stored, const char *const *paths, int files)
{
    RING_TRY(train_alloc((void **)&stored->paths, (size_t)files * sizeof *stored->paths,
                         "the list of files"));
    for (; stored->files < files; stored->files++) {
        stored->paths[stored->files] = strdup(paths[stored->files]);
        if (stored->paths[stored->files] == NULL)
            return train_fail(RING_ERR_MEMORY, "no memory for the list of files");
    }
    return RING_OK;
}

ring_status stored_open(stored_tensors *stored, const char *const *paths, int files, bool whole)
{
    *stored = (stored_tensors){.fd = -1};
    RING_TRY(copy_paths(stored, paths, files));
    for (int f = 0; f < files; f++)
        RING_TRY(list_file(stored, f, whole));
    if (stored->count > 0)
        qsort(stored->ranges, (size_t)stored->count, sizeof *stored->ranges, by_name_and_begin);
    return check_ranges(stored);
}

void stored_free(stored_tensors *stored)
{
    if (stored->paths != NULL && stored->fd >= 0)
        close(stored->fd);
    for (int f = 0; f < stored->files; f++)
        free(stored->paths[f]);
    free(stored->paths);
    free(stored->ranges);
    *stored = (stored_tensors){.fd = -1};
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* @return the index of the first range that ends after element @p begin of the tensor @p name, or
 * that has a later name. */
static int find(const stored_tensors *stored, const char *name, size_t begin)
{
    int low = 0, high = stored->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const stored_range *range = &stored->ranges[middle];
        const int order = strcmp(range->name, name);
        if (order < 0 || (order == 0 && range->begin + range->count <= begin))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const stored_range *stored_find(const stored_tensors *stored, const char *name)
{
    const int i = find(stored, name, 0);
    if (i == stored->count || strcmp(stored->ranges[i].name, name) != 0)
        return NULL;
    return &stored->ranges[i];
}

size_t stored_count(const stored_tensors *stored, const char *name)
{
    size_t end = 0;
    for (int i = find(stored, name, 0);
         i < stored->count && strcmp(stored->ranges[i].name, name) == 0; i++)
        end = stored->ranges[i].begin + stored->ranges[i].count;
    return end;
}

static ring_status open_file(stored_tensors *stored, int file)
{
    if (stored->fd >= 0 && stored->open_file == file)
        return RING_OK;
    if (stored->fd >= 0)
        close(stored->fd);
    stored->open_file = file;
    return open_path(stored->paths[file], &stored->fd);
}

static ring_status read_bytes(const stored_tensors *stored, void *to, size_t bytes, size_t at)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(stored->fd, (char *)to + done, bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return train_fail(RING_ERR_SYSTEM, "%s: %s", stored->paths[stored->open_file],
                              got < 0 ? strerror(errno) : "the file ends too early");
        done += (size_t)got;
    }
    return RING_OK;
}

/* Reads 16-bit elements from offset @p at, and converts them to float32. */
static ring_status read_cast(const stored_tensors *stored, const stored_range *range, size_t at,
                             size_t count, float *values)
{
    uint16_t block[CAST_BLOCK];
    for (size_t done = 0; done < count;) {
        const size_t left = count - done, now = left < CAST_BLOCK ? left : CAST_BLOCK;
        RING_TRY(read_bytes(stored, block, now * sizeof *block, at + done * sizeof *block));
        if (range->type == RING_FLOAT16)
            kernel_f16_to_f32(values + done, block, now);
        else
            kernel_bf16_to_f32(values + done, block, now);
        done += now;
    }
    return RING_OK;
}

/* Reads @p count elements of a range, after its first @p skip elements. */
static ring_status read_range(stored_tensors *stored, const stored_range *range, size_t skip,
                              size_t count, float *values)
{
    const size_t at = range->at + skip * safetensors_size(range->type);
    RING_TRY(open_file(stored, range->file));
    if (range->type == RING_FLOAT32)
        return read_bytes(stored, values, count * sizeof *values, at);
    return read_cast(stored, range, at, count, values);
}

/* Reads stored elements [begin, begin + count) of a tensor from one or more ranges. */
static ring_status read_places(stored_tensors *stored, const char *name, size_t begin, size_t count,
                               float *values)
{
    for (int i = find(stored, name, begin); count > 0; i++) {
        const stored_range *range = &stored->ranges[i];
        if (i == stored->count || strcmp(range->name, name) != 0)
            return train_fail(RING_ERR_SYSTEM, "%s: the stored tensor has fewer than %zu elements",
                              name, begin + count);
        const size_t skip = begin - range->begin, left = range->count - skip;
        const size_t now = left < count ? left : count;
        RING_TRY(read_range(stored, range, skip, now, values));
        begin += now;
        values += now;
        count -= now;
    }
    return RING_OK;
}

ring_status stored_read(stored_tensors *stored, const char *name, const tensor_order *order,
                        size_t begin, size_t count, float *values)
{
    size_t run;
    for (size_t done = 0; done < count; done += run) {
        const size_t place = tensor_order_place(order, begin + done, &run);
        run = run < count - done ? run : count - done;
        RING_TRY(read_places(stored, name, place, run, values + done));
    }
    return RING_OK;
}
