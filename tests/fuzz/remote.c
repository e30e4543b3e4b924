/* SPDX-License-Identifier: Apache-2.0
 * Messages between two ringruns. */
#include "fuzz.h"
#include "job.h"
#include "launch_frames.h"

#include <stdlib.h>
#include <string.h>

/* ---- The job -------------------------------------------------------------------- */

static bytes packed_job(void)
{
    bytes out = {0};
    int slots[] = {4, 0};
    char host[] = "n2", directory[] = "/work", address[] = "10.0.0.1";
    const share s = {.host = host, .node = 1, .first_rank = 3, .ranks = 2, .slots = slots};
    job j = {.ranks = 9,
             .nodes = 3,
             .port = 29500,
             .binding = BIND_AUTO,
             .has_secret = true,
             .directory = directory,
             .address = address};
    texts_add(&j.argv, "program");
    texts_add(&j.argv, "a'b \"c\" $d\n");
    texts_add(&j.exports, "NAME=value=more");
    job_pack(&j, &s, &out);
    texts_free(&j.argv);
    texts_free(&j.exports);
    return out;
}

static void seed_job(fuzz_seeds *to)
{
    bytes packed = packed_job();
    fuzz_add(to, bytes_head(&packed), bytes_count(&packed));
    bytes_free(&packed);
}

/* A job that was read is written as the same bytes. */
static ring_status parse_job(const unsigned char *data, size_t size)
{
    bytes again = {0};
    job j;
    share s;
    RING_TRY(job_unpack((const char *)data, size, &j, &s));
    must(s.first_rank + s.ranks <= j.ranks && s.ranks >= 1 && s.node < j.nodes);
    job_pack(&j, &s, &again);
    must(bytes_count(&again) == size && memcmp(bytes_head(&again), data, size) == 0);
    bytes_free(&again);
    share_free(&s);
    job_free(&j);
    return RING_OK;
}

const fuzz_target fuzz_job = {.name = "job",
                              .reads = "the job that ringrun is given by ssh",
                              .most = 1024,
                              .seeds = seed_job,
                              .parse = parse_job,
                              .reason = fail_text};

/* ---- Frames --------------------------------------------------------------------- */

static void seed_launch_frames(fuzz_seeds *to)
{
    bytes out = {0}, packed = packed_job();
    const rank_end end = {.rank = 3, .code = 7, .pid = 99, .why = "was killed"};
    const frame ended = frames_of_end(FRAME_ENDED, &end);
    frames_put(&out, &(frame){FRAME_HELLO, 0, RING_VERSION_CODE, "10.0.0.1", 8});
    frames_put(&out, &(frame){FRAME_OUTPUT, 1, 3, "hello\n", 6});
    frames_put(&out, &ended);
    fuzz_add(to, bytes_head(&out), bytes_count(&out));
    bytes_free(&out);
    frames_put(&out, &(frame){FRAME_JOB, 0, 0, bytes_head(&packed), bytes_count(&packed)});
    frames_put(&out, &(frame){.type = FRAME_INPUT});
    frames_put(&out, &(frame){.type = FRAME_SIGNAL, .rank = 15});
    frames_put(&out, &(frame){.type = FRAME_MUTE, .stream = 2, .rank = 1});
    fuzz_add(to, bytes_head(&out), bytes_count(&out));
    bytes_free(&out);
    bytes_free(&packed);
}

/* All but the two bytes of a head that nobody reads. */
static void check_frame(const frame *f)
{
    const char *head = f->data - 12;
    bytes again = {0};
    must(f->type >= FRAME_HELLO && f->type < FRAME_TYPES && f->rank >= 0);
    must(f->bytes <= (f->type == FRAME_JOB ? FRAME_JOB_MAX : FRAME_DATA_MAX));
    frames_put(&again, f);
    must(bytes_count(&again) == 12 + f->bytes && memcmp(bytes_head(&again), head, 2) == 0);
    must(memcmp(bytes_head(&again) + 4, head + 4, bytes_count(&again) - 4) == 0);
    bytes_free(&again);
}

static void check_end(const frame *f)
{
    rank_end end;
    if (f->type != FRAME_ENDED || !frames_get_end(f, &end))
        return;
    must(end.code >= 0 && end.code < 256 && end.signal >= 0 && end.signal < 128);
    must(memchr(end.why, '\0', sizeof end.why) != NULL);
}

static void check_job(const frame *f)
{
    job j;
    share s;
    if (f->type != FRAME_JOB || job_unpack(f->data, f->bytes, &j, &s) != RING_OK)
        return;
    share_free(&s);
    job_free(&j);
}

static void check_all(void *context, const frame *f)
{
    int *count = context;
    check_frame(f);
    check_end(f);
    check_job(f);
    ++*count;
}

static ring_status parse_launch_frames(const unsigned char *data, size_t size)
{
    bytes in = {0};
    int count = 0;
    bytes_add(&in, data, size);
    const bool whole = frames_each(&in, check_all, &count);
    bytes_free(&in);
    return whole && count > 0 ? RING_OK : RING_ERR_PEER;
}

const fuzz_target fuzz_launch_frames = {.name = "launch_frames",
                                        .reads = "frames between two ringruns",
                                        .most = 2048,
                                        .seeds = seed_launch_frames,
                                        .parse = parse_launch_frames};
