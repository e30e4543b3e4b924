/* SPDX-License-Identifier: Apache-2.0
 * Adds up the sizes of all files, then reads the files one after another into two arrays. */
#include "cifar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errors.h"

enum { RECORD = 1 + CIFAR_PIXELS, FILES_MAX = 100, PATH_BYTES = 4096 };

/* Limit of all images together: far more than CIFAR-10 has, and far less than a machine's memory.
 */
#define BYTES_MAX ((size_t)4 << 30)

static bool make_path(char *path, const char *folder, bool test, int number)
{
    const int length = test ? snprintf(path, PATH_BYTES, "%s/test_batch.bin", folder)
                            : snprintf(path, PATH_BYTES, "%s/data_batch_%d.bin", folder, number);
    return length > 0 && length < PATH_BYTES && access(path, F_OK) == 0;
}

bool cifar_is_here(const char *folder)
{
    char path[PATH_BYTES];
    return make_path(path, folder, false, 1) || make_path(path, folder, true, 1);
}

/* Adds the records of the file to @p count. */
static ring_status measure(const char *path, size_t *count)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) /* opening a FIFO would block */
        return train_fail(RING_ERR_CONFIG, "%s: not a regular file", path);
    const size_t bytes = (size_t)info.st_size;
    if (bytes == 0 || bytes % RECORD != 0)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the file has %zu byte%s, which is not a multiple of CIFAR-10's record of %d "
            "bytes; download the file again",
            path, bytes, plural(bytes), RECORD);
    *count += bytes / RECORD;
    if (*count > BYTES_MAX / RECORD)
        return train_fail(RING_ERR_CONFIG,
                          "%s: the folder has more than 4 GiB of images; give a smaller data set",
                          path);
    return RING_OK;
}

static ring_status read_record(FILE *file, const char *path, uint8_t *label, uint8_t *image)
{
    if (fread(label, 1, 1, file) == 1 && fread(image, 1, CIFAR_PIXELS, file) == CIFAR_PIXELS)
        return RING_OK;
    if (ferror(file))
        return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    return train_fail(RING_ERR_CONFIG, "%s: the file became shorter while it was read; try again",
                      path);
}

/* Appends the records of a file to the arrays, which have @p at records so far. */
static ring_status read_file(const char *path, idx_array *images, idx_array *labels, size_t *at)
{
    size_t count = 0;
    RING_TRY(measure(path, &count));
    if (count > labels->bytes - *at)
        return train_fail(RING_ERR_CONFIG,
                          "%s: the file became longer while it was read; try again", path);
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    ring_status status = RING_OK;
    for (size_t i = 0; i < count && status == RING_OK; i++, (*at)++)
        status = read_record(file, path, labels->data + *at, images->data + *at * CIFAR_PIXELS);
    fclose(file);
    return status;
}

static ring_status allocate(idx_array *array, size_t count, size_t width)
{
    *array = (idx_array){.shape = {count, width}, .bytes = count * width};
    return idx_allocate(array);
}

ring_status cifar_read(const char *folder, bool test, idx_array *images, idx_array *labels)
{
    char path[PATH_BYTES];
    const int files = test ? 1 : FILES_MAX;
    size_t count = 0, at = 0;
    for (int f = 1; f <= files && (make_path(path, folder, test, f) || f == 1); f++)
        RING_TRY(measure(path, &count));
    RING_TRY(allocate(images, count, CIFAR_PIXELS));
    RING_TRY(allocate(labels, count, 1));
    for (int f = 1; f <= files && make_path(path, folder, test, f); f++)
        RING_TRY(read_file(path, images, labels, &at));
    if (at != count)
        return train_fail(RING_ERR_CONFIG, "%s: files were removed while they were read; try again",
                          folder);
    return RING_OK;
}
