/* SPDX-License-Identifier: Apache-2.0
 * One to eight changes to a seed: of bits, bytes, numbers, words and blocks. */
#include "mutate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct mutant {
    uint64_t random; /* state */
    unsigned char *bytes;
    size_t size, most;
    const fuzz_seeds *seeds;
} mutant;

/* splitmix64: neighbouring states give unrelated numbers. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t any(mutant *m)
{
    m->random += 0x9e3779b97f4a7c15u;
    return scramble(m->random);
}

/* @return a number below @p limit; 0 if there is none. */
static size_t below(mutant *m, size_t limit)
{
    return limit > 0 ? (size_t)(any(m) % limit) : 0;
}

/* Most blocks are short. */
static size_t block(mutant *m, size_t limit)
{
    const size_t length = 1 + below(m, (size_t)1 << below(m, 10));
    return min_size(length, limit);
}

/* ---- Room in the middle --------------------------------------------------------- */

/* Opens a gap of at most @p bytes. @return what there was room for. */
static size_t open_gap(mutant *m, size_t at, size_t bytes)
{
    const size_t gap = min_size(bytes, m->most - m->size);
    memmove(m->bytes + at + gap, m->bytes + at, m->size - at);
    m->size += gap;
    return gap;
}

static void close_gap(mutant *m, size_t at, size_t bytes)
{
    memmove(m->bytes + at, m->bytes + at + bytes, m->size - at - bytes);
    m->size -= bytes;
}

static void insert(mutant *m, size_t at, const void *bytes, size_t count)
{
    const size_t gap = open_gap(m, at, count);
    if (gap > 0)
        memcpy(m->bytes + at, bytes, gap);
}

/* ---- Changes -------------------------------------------------------------------- */

static void flip_bit(mutant *m)
{
    if (m->size > 0)
        m->bytes[below(m, m->size)] ^= (unsigned char)(1u << below(m, 8));
}

static void set_byte(mutant *m)
{
    if (m->size > 0)
        m->bytes[below(m, m->size)] = (unsigned char)any(m);
}

static void count_byte(mutant *m)
{
    if (m->size > 0)
        m->bytes[below(m, m->size)] += (unsigned char)(below(m, 33) - 16);
}

/* Numbers at which parsers break, of 1 to 8 bytes, in either byte order. */
static void set_number(mutant *m)
{
    static const uint64_t edges[] = {0,          1,         2,          0x7f,           0x80,
                                     0xff,       0x100,     0x7fff,     0x8000,         0xffff,
                                     0x10000,    0x10001,   0x7fffffff, 0x80000000,     0xffffffff,
                                     1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};
    const size_t bytes = (size_t)1 << below(m, 4);
    uint64_t number = edges[below(m, sizeof edges / sizeof *edges)];
    const bool swapped = below(m, 4) == 0;
    if (m->size < bytes)
        return;
    unsigned char *at = m->bytes + below(m, m->size - bytes + 1);
    for (size_t i = 0; i < bytes; i++, number >>= 8)
        at[swapped ? bytes - 1 - i : i] = (unsigned char)number;
}

static void insert_noise(mutant *m)
{
    unsigned char noise[64];
    const size_t bytes = block(m, sizeof noise);
    const bool same = below(m, 2) == 0;
    const unsigned char byte = (unsigned char)any(m);
    for (size_t i = 0; i < bytes; i++)
        noise[i] = same ? byte : (unsigned char)any(m);
    insert(m, below(m, m->size + 1), noise, bytes);
}

static const char *const words[] = {"0",
                                    "1",
                                    "-1",
                                    "65535",
                                    "65536",
                                    "2147483647",
                                    "2147483648",
                                    "9223372036854775807",
                                    "18446744073709551616",
                                    "99999999999999999999999999999999",
                                    "1e999",
                                    "-1e-999",
                                    "0x7fffffff",
                                    "nan",
                                    "inf",
                                    "0.0000001",
                                    "%s%n",
                                    "\x1b[31m",
                                    "\\u001b",
                                    "\xc2\x9b",
                                    "\xff\xfe",
                                    "\xf0\x9f\x98\x80",
                                    "\n",
                                    "\r\n",
                                    "\t",
                                    " ",
                                    ",",
                                    ":",
                                    "=",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    "\"",
                                    "#",
                                    "@",
                                    "^",
                                    "-",
                                    "(x",
                                    ")",
                                    "..",
                                    "::",
                                    "/",
                                    "true",
                                    "null"};

static const char *some_word(mutant *m)
{
    return words[below(m, sizeof words / sizeof *words)];
}

static void insert_word(mutant *m)
{
    const char *word = some_word(m);
    insert(m, below(m, m->size + 1), word, strlen(word));
}

/* Another number in place of one that is written in digits. */
static void change_digits(mutant *m)
{
    size_t at = below(m, m->size), end;
    while (at < m->size && !isdigit(m->bytes[at]))
        at++;
    for (end = at; end < m->size && isdigit(m->bytes[end]);)
        end++;
    if (at == end)
        return;
    char number[32];
    const char *other = below(m, 2) == 0 ? some_word(m) : number;
    (void)text_format(number, sizeof number, "%llu", (unsigned long long)(any(m) >> below(m, 64)));
    close_gap(m, at, end - at);
    insert(m, at, other, strlen(other));
}

static void erase(mutant *m)
{
    const size_t at = below(m, m->size);
    close_gap(m, at, block(m, m->size - at));
}

static void truncate_end(mutant *m)
{
    m->size = below(m, m->size + 1);
}

/* A block again behind itself, up to 64 times. */
static void repeat(mutant *m)
{
    const size_t at = below(m, m->size), bytes = block(m, m->size - at);
    for (size_t times = 1 + below(m, 64); bytes > 0 && times > 0; times--) {
        const size_t gap = open_gap(m, at + bytes, bytes);
        memmove(m->bytes + at + bytes, m->bytes + at, gap);
    }
}

static void copy_block(mutant *m)
{
    const size_t from = below(m, m->size), to = below(m, m->size);
    const size_t bytes = block(m, m->size - max_size(from, to));
    if (bytes > 0)
        memmove(m->bytes + to, m->bytes + from, bytes);
}

/* The beginning of this and the end of another seed. */
static void splice(mutant *m)
{
    const fuzz_seed *other = &m->seeds->all[below(m, m->seeds->count)];
    const size_t from = below(m, other->size + 1);
    const size_t at = below(m, 2) == 0 ? min_size(from, m->size) : below(m, m->size + 1);
    m->size = at;
    insert(m, at, other->bytes + from, other->size - from);
}

static void change(mutant *m)
{
    static void (*const changes[])(
        mutant * m) = {flip_bit,    set_byte,    count_byte,    set_number, insert_noise,
                       insert_word, insert_word, change_digits, erase,      truncate_end,
                       repeat,      copy_block,  splice};
    changes[below(m, sizeof changes / sizeof *changes)](m);
}

static uint64_t hash(const char *name)
{
    uint64_t value = 0;
    for (; *name != '\0'; name++)
        value = scramble(value * 31 + (unsigned char)*name);
    return value;
}

static void fill_with_noise(mutant *m)
{
    m->size = below(m, m->most + 1);
    for (size_t i = 0; i < m->size; i++)
        m->bytes[i] = (unsigned char)any(m);
}

size_t mutate(const fuzz_target *target, const fuzz_seeds *seeds, uint64_t seed, uint64_t number,
              unsigned char *out)
{
    mutant m = {.random = scramble(hash(target->name) ^ scramble(seed)) ^ scramble(number),
                .bytes = out,
                .most = target->most,
                .seeds = seeds};
    const fuzz_seed *from = &seeds->all[number < seeds->count ? number : below(&m, seeds->count)];
    insert(&m, 0, from->bytes, from->size);
    if (number < seeds->count)
        return m.size;
    if (below(&m, 256) == 0)
        fill_with_noise(&m);
    for (size_t changes = 1 + below(&m, 1 + below(&m, 8)); changes > 0; changes--)
        change(&m);
    return m.size;
}
