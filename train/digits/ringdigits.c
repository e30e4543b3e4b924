/* SPDX-License-Identifier: Apache-2.0
 *
 * ringdigits: writes a data set of digits that look handwritten, in the file layout of MNIST or
 * CIFAR-10, for machines that do not have those data sets. Each image is drawn from pen strokes
 * with a random slant, rotation, size, position, thickness and ink, and with noise. The same seed
 * gives the same bytes on every machine.
 */
#include "args.h"
#include "output.h"
#include "strokes.h"
#include "words.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IMAGES_MAX = 10000000 };
enum { SIDE = 28, PIXELS = SIDE * SIDE, CURVE_STEPS = 6, MAX_SEGMENTS = 128 };

/* ---- Random numbers: PCG32 (O'Neill 2014) -------------------------------------------------- */

typedef struct chance {
    uint64_t state;
} chance;

static uint32_t chance_bits(chance *c)
{
    const uint64_t old = c->state;
    c->state = old * 6364136223846793005u + 1442695040888963407u;
    const uint32_t shifted = (uint32_t)(((old >> 18) ^ old) >> 27);
    const uint32_t turn = (uint32_t)(old >> 59);
    return shifted >> turn | shifted << (-turn & 31);
}

static float uniform(chance *c, float low, float high)
{
    return low + (high - low) * (float)(chance_bits(c) >> 8) * 0x1p-24f;
}

/* ---- Handwriting: maps the unit square to pixels ------------------------------------------- */

/* The random properties of the handwriting in one image. */
typedef struct hand {
    float xx, xy, yx, yy, x0, y0; /* affine map from the unit square to pixels */
    float thickness, ink, wobble; /* wobble: largest shift of a point, in the unit square */
} hand;

/* Draws the properties of an image. The centre of the unit square is mapped to the centre of the
 * image, shifted by up to two pixels. */
static hand hand_pick(chance *c)
{
    const float turn = uniform(c, -0.22f, 0.22f), slant = uniform(c, -0.25f, 0.3f);
    const float wide = uniform(c, 14, 20), high = uniform(c, 18, 22);
    /* approximations for small angles, which give the same bits on every machine */
    const float cosine = 1 - turn * turn / 2, sine = turn;
    hand h = {
        .xx = wide * cosine,
        .xy = -high * sine - high * slant,
        .yx = wide * sine,
        .yy = high * cosine,
    };
    h.thickness = uniform(c, 0.7f, 1.7f);
    h.ink = uniform(c, 0.75f, 1);
    h.wobble = uniform(c, 0.01f, 0.035f);
    h.x0 = SIDE / 2.0f - (h.xx + h.xy) / 2 + uniform(c, -2, 2);
    h.y0 = SIDE / 2.0f - (h.yx + h.yy) / 2 + uniform(c, -2, 2);
    return h;
}

/* @return the point in pixels, after a random shift. */
static digit_point hand_place(const hand *h, digit_point p, chance *c)
{
    const float x = p.x + uniform(c, -h->wobble, h->wobble);
    const float y = p.y + uniform(c, -h->wobble, h->wobble);
    return (digit_point){h->xx * x + h->xy * y + h->x0, h->yx * x + h->yy * y + h->y0};
}

/* ---- Curves as short straight pieces (Catmull-Rom) ---------------------------------------- */

typedef struct segment {
    digit_point a, b;
} segment;

/* @return the Catmull-Rom curve between b and c at t, from 0 to 1; a and d are their neighbours. */
static float spline(float a, float b, float c, float d, float t)
{
    return b + 0.5f * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

/* Writes the segments of a stroke to @p out. @return their number. */
static int add_stroke(const digit_stroke *stroke, const hand *h, chance *c, segment *out)
{
    digit_point p[DIGIT_MAX_POINTS];
    int used = 0;
    for (int i = 0; i < stroke->points; i++)
        p[i] = hand_place(h, stroke->at[i], c);
    digit_point last = p[0];
    for (int i = 0; i + 1 < stroke->points; i++) {
        const digit_point before = p[i > 0 ? i - 1 : 0];
        const digit_point after = p[i + 2 < stroke->points ? i + 2 : i + 1];
        for (int k = 1; k <= CURVE_STEPS; k++) {
            const float t = (float)k / CURVE_STEPS;
            const digit_point next = {spline(before.x, p[i].x, p[i + 1].x, after.x, t),
                                      spline(before.y, p[i].y, p[i + 1].y, after.y, t)};
            out[used++] = (segment){last, next};
            last = next;
        }
    }
    return used;
}

/* ---- Ink ------------------------------------------------------------------------------------ */

/* @return the squared distance of a point from the segment. */
static float squared_distance(digit_point p, const segment *s)
{
    const float dx = s->b.x - s->a.x, dy = s->b.y - s->a.y;
    const float length = dx * dx + dy * dy + 1e-9f;
    float t = ((p.x - s->a.x) * dx + (p.y - s->a.y) * dy) / length;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    const float x = p.x - s->a.x - t * dx, y = p.y - s->a.y - t * dy;
    return x * x + y * y;
}

static int clamp_pixel(float x)
{
    return x < 0 ? 0 : x > SIDE - 1 ? SIDE - 1 : (int)x;
}

/* Updates each pixel's squared distance from the nearest segment. Pixels that are farther than
 * @p reach from this segment get no ink from it, so they are skipped. */
static void lower_distances(float *nearest, const segment *s, float reach)
{
    const int left = clamp_pixel(fminf(s->a.x, s->b.x) - reach);
    const int right = clamp_pixel(fmaxf(s->a.x, s->b.x) + reach);
    const int top = clamp_pixel(fminf(s->a.y, s->b.y) - reach);
    const int bottom = clamp_pixel(fmaxf(s->a.y, s->b.y) + reach);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            const digit_point centre = {(float)x + 0.5f, (float)y + 0.5f};
            const float distance = squared_distance(centre, s);
            if (distance < nearest[y * SIDE + x])
                nearest[y * SIDE + x] = distance;
        }
    }
}

static void draw(const segment *segments, int count, const hand *h, chance *c,
                 unsigned char *pixels)
{
    float nearest[PIXELS];
    const float reach = h->thickness + 2;
    for (int i = 0; i < PIXELS; i++)
        nearest[i] = reach * reach;
    for (int i = 0; i < count; i++)
        lower_distances(nearest, &segments[i], reach);
    for (int i = 0; i < PIXELS; i++) {
        /* The edge of a stroke is blurred over two thirds of a pixel to both sides. */
        float cover = (h->thickness + 0.66f - sqrtf(nearest[i])) / 1.33f;
        cover = cover < 0 ? 0 : cover > 1 ? 1 : cover;
        const float noise = uniform(c, -0.06f, 0.06f);
        const float value = cover > 0 ? cover * h->ink + noise : 0;
        pixels[i] = (unsigned char)(255 * (value < 0 ? 0 : value > 1 ? 1 : value));
    }
}

static void draw_digit(int digit, chance *c, unsigned char *pixels)
{
    segment segments[MAX_SEGMENTS];
    int forms, used = 0;
    const digit_form *all = digit_forms(digit, &forms);
    const digit_form *form = &all[chance_bits(c) % (uint32_t)forms];
    const hand h = hand_pick(c);
    for (int i = 0; i < form->strokes; i++)
        used += add_stroke(&form->stroke[i], &h, c, segments + used);
    draw(segments, used, &h, c, pixels);
}

/* ---- Files --------------------------------------------------------------------------------- */

enum { NAME_BYTES = 64 };

static const char train_images[] = "train-images-idx3-ubyte";
static const char train_labels[] = "train-labels-idx1-ubyte";
static const char test_images[] = "t10k-images-idx3-ubyte";
static const char test_labels[] = "t10k-labels-idx1-ubyte";
static const char test_batch[] = "test_batch.bin";
/* The files in the order in which they are renamed; the data set is complete when the last file
 * exists. Each list ends with NULL. */
static const char *const mnist_names[] = {train_images, train_labels, test_images, test_labels,
                                          NULL};
static const char *const cifar_names[] = {"data_batch_1.bin",
                                          "data_batch_2.bin",
                                          "data_batch_3.bin",
                                          "data_batch_4.bin",
                                          "data_batch_5.bin",
                                          test_batch,
                                          NULL};
static const char *const *names = mnist_names; /* the files that are written */
enum { CIFAR_BATCHES = 5 };

static const char *partial_name(const char *name, char text[NAME_BYTES])
{
    snprintf(text, NAME_BYTES, "%s.partial", name);
    return text;
}

/* Prints an error, removes the unfinished files, and ends the program. */
static _Noreturn void fail(const char *what, const char *name)
{
    char partial[NAME_BYTES];
    fprintf(stderr, "ringdigits: cannot %s %s: %s\n", what, name, strerror(errno));
    for (int i = 0; names[i] != NULL; i++)
        unlink(partial_name(names[i], partial));
    exit(EXIT_FAILURE);
}

typedef struct output {
    FILE *stream;
    const char *name;
} output;

static output create(const char *name)
{
    char partial[NAME_BYTES];
    const output out = {output_open(partial_name(name, partial)), name};
    if (out.stream == NULL)
        fail("create", partial);
    const mode_t mask = umask(0); /* let other users read the files, if the umask allows it */
    umask(mask);
    fchmod(fileno(out.stream), 0666 & ~mask);
    return out;
}

static void put(const output *out, const void *data, size_t bytes)
{
    if (fwrite(data, 1, bytes, out->stream) != bytes)
        fail("write", out->name);
}

static void put_u32(const output *out, uint32_t x)
{
    const unsigned char bytes[4] = {(unsigned char)(x >> 24), (unsigned char)(x >> 16),
                                    (unsigned char)(x >> 8), (unsigned char)x};
    put(out, bytes, sizeof bytes);
}

static void finish(const output *out)
{
    if (fclose(out->stream) != 0)
        fail("write", out->name);
}

static void write_set(const char *images_name, const char *labels_name, uint32_t count, chance *c)
{
    const output images = create(images_name), labels = create(labels_name);
    put_u32(&images, 0x803);
    put_u32(&images, count);
    put_u32(&images, SIDE);
    put_u32(&images, SIDE);
    put_u32(&labels, 0x801);
    put_u32(&labels, count);
    for (uint32_t i = 0; i < count; i++) {
        unsigned char pixels[PIXELS];
        const unsigned char digit = (unsigned char)(chance_bits(c) % 10);
        draw_digit(digit, c, pixels);
        put(&images, pixels, sizeof pixels);
        put(&labels, &digit, 1);
    }
    finish(&images);
    finish(&labels);
}

/* ---- CIFAR-10's records: a label, then red, green and blue planes ---------------------------- */

enum { CIFAR_SIDE = 32, CIFAR_PLANE = CIFAR_SIDE * CIFAR_SIDE, CIFAR_EDGE = 2 };

static void put_record(const output *out, chance *c)
{
    unsigned char record[1 + 3 * CIFAR_PLANE], pixels[PIXELS];
    record[0] = (unsigned char)(chance_bits(c) % 10);
    draw_digit(record[0], c, pixels);
    for (int p = 0; p < 3; p++) { /* random colours for ink and paper */
        unsigned char *plane = record + 1 + (ptrdiff_t)p * CIFAR_PLANE;
        const float paper = uniform(c, 0, 110), ink = uniform(c, 140, 255);
        for (int i = 0; i < CIFAR_PLANE; i++)
            plane[i] = (unsigned char)paper;
        for (int i = 0; i < PIXELS; i++)
            plane[(i / SIDE + CIFAR_EDGE) * CIFAR_SIDE + i % SIDE + CIFAR_EDGE] =
                (unsigned char)(paper + (ink - paper) * (float)pixels[i] / 255);
    }
    put(out, record, sizeof record);
}

static void write_batch(const char *name, uint32_t count, chance *c)
{
    const output out = create(name);
    for (uint32_t i = 0; i < count; i++)
        put_record(&out, c);
    finish(&out);
}

static void write_cifar(uint32_t train, uint32_t test, chance *c)
{
    for (uint32_t b = 0; b < CIFAR_BATCHES; b++)
        write_batch(cifar_names[b],
                    train * (uint64_t)(b + 1) / CIFAR_BATCHES - train * (uint64_t)b / CIFAR_BATCHES,
                    c);
    write_batch(test_batch, test, c);
}

static void write_mnist(uint32_t train, uint32_t test, chance *c)
{
    write_set(train_images, train_labels, train, c);
    write_set(test_images, test_labels, test, c);
}

/* Renames the files to their final names. Before that, removes the last file of an older data set,
 * so that the older set does not look complete while its files are replaced. */
static void publish(void)
{
    char partial[NAME_BYTES];
    const char *last = names == mnist_names ? test_labels : test_batch;
    if (unlink(last) != 0 && errno != ENOENT)
        fail("replace", last);
    for (int i = 0; names[i] != NULL; i++) {
        if (rename(partial_name(names[i], partial), names[i]) != 0)
            fail("replace", names[i]);
    }
}

/* ---- Options ------------------------------------------------------------------------------- */

typedef struct options {
    const char *dir;
    unsigned seed, train, test;
    bool cifar;
} options;

#define NOT_GIVEN UINT32_MAX
enum { MNIST_TRAIN = 60000, CIFAR_TRAIN = 50000 };

static void take_cifar(const args_given *given)
{
    options *o = given->out;
    o->cifar = true;
}

#define AT(member) ARGS_AT(options, member)
static const args_row rows[] = {
    {"cifar", 'c', NULL, "Write CIFAR-10's files, with digits in colour, 3 x 32 x 32",
     .take = take_cifar},
    {"seed", 's', "N", "Seed of the random numbers (default 1)", args_whole, AT(seed),
     .most = UINT32_MAX},
    {"train", 'n', "N", "Number of training images (default 60000; with --cifar 50000)", args_whole,
     AT(train), .least = 1, .most = IMAGES_MAX},
    {"test", 't', "N", "Number of test images (default 10000)", args_whole, AT(test), .least = 1,
     .most = IMAGES_MAX},
    {0},
};

static int take_dir(char **words, int count, void *out)
{
    options *o = out;
    (void)count;
    if (o->dir != NULL)
        args_fail("unexpected argument '%s'; the folder is already %s", words[0], o->dir);
    o->dir = words[0];
    return 1;
}

int main(int argc, char **argv)
{
    static const args_program ringdigits = {
        "ringdigits", rows, "DIR",
        "Writes digits that look handwritten to DIR, in the file layout of MNIST or CIFAR-10, for "
        "machines without those data sets. The same seed gives the same files.\v"
        "Example: ringdigits /tmp/digits && ringtrain --deepspeed_config adam.json --data "
        "/tmp/digits\n\n"
        "Exit status: 0 all files were written, 1 a file could not be written, 2 wrong usage.",
        .take = take_dir};
    options o = {.seed = 1, .train = NOT_GIVEN, .test = 10000};
    output_check_at_exit(EXIT_FAILURE);
    args_parse(&ringdigits, argc, argv, &o);
    if (o.dir == NULL)
        args_fail("the folder to write to is missing; write ringdigits DIR");
    if (o.train == NOT_GIVEN)
        o.train = o.cifar ? CIFAR_TRAIN : MNIST_TRAIN;
    if (o.cifar && o.train < CIFAR_BATCHES)
        args_fail("--train %u: CIFAR-10 has %d files of training images; give at least %d", o.train,
                  CIFAR_BATCHES, CIFAR_BATCHES);
    names = o.cifar ? cifar_names : mnist_names;
    if ((mkdir(o.dir, 0777) != 0 && errno != EEXIST) || chdir(o.dir) != 0) {
        fprintf(stderr, "ringdigits: cannot write to %s: %s\n", o.dir, strerror(errno));
        return EXIT_FAILURE;
    }
    chance c = {.state = o.seed * UINT64_C(2654435761) + 88172645463325252u};
    (o.cifar ? write_cifar : write_mnist)(o.train, o.test, &c);
    publish();
    printf("%u training and %u test image%s in %s\n", o.train, o.test, plural(o.test), o.dir);
    return 0;
}
