/* SPDX-License-Identifier: Apache-2.0
 * Files for tests, written with nothing but the C library and zlib. */
#include "files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "check.h"
#include "random.h"

enum { PIXELS = 784 };

static char folder[64];

const char *files_folder(void)
{
    strcpy(folder, "/tmp/ring_train_XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    return remove(path);
}

void files_remove(void)
{
    assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int files_set_up(void **state)
{
    files_folder();
    return 0;
}

int files_tear_down(void **state)
{
    files_remove();
    return 0;
}

const char *files_path(const char *name)
{
    static char paths[8][400];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void files_write(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(files_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

void files_write_gz(const char *name, const void *data, size_t bytes)
{
    gzFile file = gzopen(files_path(name), "wb6");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, data, (unsigned)bytes), bytes);
    assert_int_equal(gzclose(file), Z_OK);
}

char *files_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    data[*bytes] = '\0';
    fclose(file);
    return data;
}

uint8_t *files_idx(int dims, const uint32_t *shape, const uint8_t *data, size_t data_bytes,
                   size_t *bytes)
{
    *bytes = 4 + 4 * (size_t)dims + data_bytes;
    uint8_t *file = calloc(1, *bytes);
    assert_non_null(file);
    file[2] = 8;
    file[3] = (uint8_t)dims;
    for (int d = 0; d < dims; d++) {
        for (int b = 0; b < 4; b++)
            file[4 + 4 * d + b] = (uint8_t)(shape[d] >> (24 - 8 * b));
    }
    if (data_bytes > 0)
        memcpy(file + 4 + 4 * dims, data, data_bytes);
    return file;
}

static void write_idx(const char *name, bool gz, int dims, const uint32_t *shape,
                      const uint8_t *data, size_t data_bytes)
{
    size_t bytes;
    uint8_t *file = files_idx(dims, shape, data, data_bytes, &bytes);
    if (gz)
        files_write_gz(name, file, bytes);
    else
        files_write(name, file, bytes);
    free(file);
}

/* Label l lights rows 2l to 2l + 5 a bit more than the noise. */
static void write_part(const char *images_name, const char *labels_name, bool gz, size_t count,
                       uint64_t seed)
{
    uint8_t *images = malloc(count * PIXELS), *labels = malloc(count);
    assert_non_null(images);
    assert_non_null(labels);
    train_random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < count; i++) {
        labels[i] = (uint8_t)(random_u32(&random) % 10);
        for (size_t p = 0; p < PIXELS; p++) {
            const size_t row = p / 28;
            const bool lit = row >= 2U * labels[i] && row < 2U * labels[i] + 6U;
            images[i * PIXELS + p] = (uint8_t)(random_u32(&random) % 128 + (lit ? 64 : 0));
        }
    }
    write_idx(images_name, gz, 3, (const uint32_t[]){(uint32_t)count, 28, 28}, images,
              count * PIXELS);
    write_idx(labels_name, gz, 1, (const uint32_t[]){(uint32_t)count}, labels, count);
    free(images);
    free(labels);
}

void files_dataset(size_t train, size_t test)
{
    write_part("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", true, train, 1);
    write_part("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", false, test, 2);
}
