/* SPDX-License-Identifier: Apache-2.0
 * Reads a part of a file into memory, without the header of llm.c if there is one. */
#include "tokens.h"

#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errors.h"

enum { PATH_BYTES = 4096, HEADER = 1024, TEST_SHARE = 10 };

/* The largest file. Every rank may have the text in memory, so this is far below a machine's
 * memory. */
#define BYTES_MAX ((size_t)4 << 30)

/* An open file and its size. */
typedef struct token_file {
    char path[PATH_BYTES];
    FILE *stream;
    size_t bytes;
} token_file;

static bool is_here(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && length < PATH_BYTES && access(path, F_OK) == 0;
}

bool tokens_are_here(const char *folder)
{
    return is_here(folder, "train.bin") || is_here(folder, "input.txt");
}

static ring_status system_fail(const token_file *file)
{
    return train_fail(RING_ERR_SYSTEM, "%s: %s", file->path, strerror(errno));
}

static ring_status open_file(token_file *file, const char *folder, const char *name)
{
    struct stat info;
    snprintf(file->path, sizeof file->path, "%s/%s", folder, name);
    if (stat(file->path, &info) != 0)
        return system_fail(file);
    if (!S_ISREG(info.st_mode)) /* opening a FIFO would block */
        return train_fail(RING_ERR_CONFIG, "%s: not a regular file", file->path);
    file->bytes = (size_t)info.st_size;
    if (file->bytes > BYTES_MAX)
        return train_fail(RING_ERR_CONFIG, "%s: the text has %zu byte%s, but must have at most %zu",
                          file->path, file->bytes, plural(file->bytes), BYTES_MAX);
    file->stream = fopen(file->path, "rbe");
    return file->stream != NULL ? RING_OK : system_fail(file);
}

/* Reads bytes [begin, begin + bytes) of a file. */
static ring_status read_part(token_file *file, size_t begin, size_t bytes, idx_array *text)
{
    *text = (idx_array){.shape = {bytes}, .bytes = bytes};
    text->data = malloc(bytes > 0 ? bytes : 1);
    if (text->data == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for %zu byte%s of text", bytes,
                          plural(bytes));
    if (fseek(file->stream, (long)begin, SEEK_SET) != 0)
        return system_fail(file);
    if (fread(text->data, 1, bytes, file->stream) == bytes)
        return RING_OK;
    if (ferror(file->stream))
        return system_fail(file);
    return train_fail(RING_ERR_CONFIG, "%s: the file became shorter while it was read; try again",
                      file->path);
}

/* Token files of llm.c begin with the magic, the version and the number of tokens, 32 bits each.
 * The rest of the header is not used. */
static const struct {
    uint32_t magic, version;
    size_t width;
} variants[] = {{20240520, 1, 2}, {20240801, 7, 4}};

/* @return whether this may be a header of llm.c, whose magics are dates of 2024, and whose versions
 * are small numbers. */
static bool is_llmc(uint32_t magic, uint32_t version)
{
    return magic / 10000 == 2024 && version < 256;
}

/* Reads the header, if there is one.
 * @param[out] begin   offset of the first token; unchanged without a header
 * @param[out] width   bytes of a token; unchanged without a header
 * @param[out] tokens  number of tokens that the header states
 * @return RING_ERR_CONFIG: the header is unknown, so that the file would be misread. */
static ring_status read_header(token_file *file, size_t *begin, size_t *width, uint32_t *tokens)
{
    uint32_t word[3] = {0};
    const bool whole = fread(word, sizeof word, 1, file->stream) == 1;
    const uint32_t magic = whole ? le32toh(word[0]) : 0, version = le32toh(word[1]);
    rewind(file->stream);
    *tokens = le32toh(word[2]);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        if (magic != variants[i].magic || version != variants[i].version)
            continue;
        *begin = HEADER;
        *width = variants[i].width;
        return RING_OK;
    }
    if (!is_llmc(magic, version) && !is_llmc(bswap_32(magic), bswap_32(version)))
        return RING_OK;
    return train_fail(
        RING_ERR_CONFIG,
        "%s: unknown header of llm.c with magic %u, version %u; a little-endian file of "
        "tokens has magic 20240520, version 1 (16 bits a token) or magic 20240801, "
        "version 7 (32 bits)",
        file->path, magic, version);
}

static ring_status read_bin(token_file *file, idx_array *text, size_t *width)
{
    uint32_t tokens;
    size_t begin = 0;
    RING_TRY(read_header(file, &begin, width, &tokens));
    if (begin > 0 && file->bytes != HEADER + *width * tokens)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the file has %zu byte%s, but its header states %u tokens of %zu bytes; "
            "download it again",
            file->path, file->bytes, plural(file->bytes), tokens, *width);
    if (file->bytes % 2 != 0)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the file has %zu byte%s, which is not a multiple of a 16-bit token; download it "
            "again",
            file->path, file->bytes, plural(file->bytes));
    return read_part(file, begin, file->bytes - begin, text);
}

ring_status tokens_read(const char *folder, bool test, idx_array *text, size_t *width)
{
    token_file file = {.stream = NULL};
    const bool binary = is_here(folder, "train.bin");
    const char *name = test ? "val.bin" : "train.bin";
    *width = binary ? 2 : 1;
    ring_status status = open_file(&file, folder, binary ? name : "input.txt");
    const size_t border = file.bytes - file.bytes / TEST_SHARE; /* of input.txt */
    if (status == RING_OK && binary)
        status = read_bin(&file, text, width);
    else if (status == RING_OK)
        status = test ? read_part(&file, border, file.bytes - border, text)
                      : read_part(&file, 0, border, text);
    if (file.stream != NULL)
        fclose(file.stream);
    return status;
}

size_t tokens_vocabulary(const idx_array *text, size_t width)
{
    size_t words = 0;
    for (size_t i = 0; i < text->bytes / width; i++) {
        const size_t token = token_at(text, width, i);
        words = token >= words ? token + 1 : words;
    }
    return words;
}
