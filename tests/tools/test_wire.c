/* SPDX-License-Identifier: Apache-2.0
 * Messages between two ringruns arrive whole, or are refused. */
#include "job.h"
#include "launch_frames.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

static void example(job *j, share *s)
{
    *j = (job){.ranks = 9,
               .nodes = 3,
               .port = 29500,
               .binding = BIND_AUTO,
               .has_secret = true,
               .directory = memory_text("/work", 5),
               .address = memory_text("10.0.0.1", 8)};
    texts_add(&j->argv, "program");
    texts_add(&j->argv, "%s", "");
    texts_add(&j->argv, "a'b \"c\" $d\n");
    texts_add(&j->exports, "NAME=value=more");
    for (size_t i = 0; i < sizeof j->secret; i++)
        j->secret[i] = (unsigned char)(7 * i);
    *s = (share){.host = memory_text("n2", 2),
                 .node = 1,
                 .first_rank = 3,
                 .ranks = 2,
                 .slots = memory_grow(NULL, 2, sizeof(int))};
    s->slots[0] = 4;
    s->slots[1] = 0;
}

static bytes packed_example(void)
{
    bytes out = {0};
    job j;
    share s;
    example(&j, &s);
    job_pack(&j, &s, &out);
    job_free(&j);
    share_free(&s);
    return out;
}

static void a_job_comes_back_as_it_was(void **state)
{
    job j, k;
    share s, t;
    bytes out = packed_example();
    example(&j, &s);
    assert_int_equal(job_unpack(bytes_head(&out), bytes_count(&out), &k, &t), RING_OK);
    assert_int_equal(k.ranks, j.ranks);
    assert_int_equal(k.nodes, j.nodes);
    assert_int_equal(k.port, j.port);
    assert_true(k.binding == BIND_AUTO && k.has_secret);
    assert_string_equal(k.directory, j.directory);
    assert_string_equal(k.address, j.address);
    assert_int_equal(k.argv.count, j.argv.count);
    for (size_t i = 0; i < j.argv.count; i++)
        assert_string_equal(k.argv.items[i], j.argv.items[i]);
    assert_string_equal(texts_get(&k.exports, "NAME"), "value=more");
    assert_memory_equal(k.secret, j.secret, sizeof j.secret);
    assert_string_equal(t.host, s.host);
    assert_int_equal(t.first_rank, 3);
    assert_int_equal(t.ranks, 2);
    assert_int_equal(t.slots[0], 4);
    job_free(&j);
    job_free(&k);
    share_free(&s);
    share_free(&t);
    bytes_free(&out);
}

static void a_job_cut_anywhere_is_refused(void **state)
{
    bytes whole = packed_example();
    for (size_t size = 0; size < bytes_count(&whole); size++) {
        job j;
        share s;
        char *copy = malloc(size + 1); /* exact, so that a sanitizer sees a step too far */
        char *exact = size > 0 ? realloc(copy, size) : copy;
        memcpy(exact, bytes_head(&whole), size);
        assert_int_equal(job_unpack(exact, size, &j, &s), RING_ERR_CONFIG);
        free(exact);
    }
    bytes_free(&whole);
}

static void a_job_with_a_changed_byte_is_whole_or_refused(void **state)
{
    bytes whole = packed_example();
    for (size_t at = 0; at < bytes_count(&whole); at++) {
        for (unsigned value = 0; value < 256; value += 51) {
            job j;
            share s;
            const char before = whole.data[at];
            whole.data[at] = (char)value;
            if (job_unpack(bytes_head(&whole), bytes_count(&whole), &j, &s) == RING_OK) {
                assert_true(s.first_rank >= 0 && s.ranks >= 1);
                assert_true(s.first_rank + s.ranks <= j.ranks);
                assert_true(j.argv.count > 0);
                job_free(&j);
                share_free(&s);
            }
            whole.data[at] = before;
        }
    }
    bytes_free(&whole);
}

/* The frames that were taken, and the bytes of each. */
typedef struct taken {
    frame frames[4];
    char data[4][400];
    size_t count;
} taken;

static void take(void *context, const frame *f)
{
    taken *t = context;
    assert_true(t->count < 4 && f->bytes <= sizeof t->data[0]);
    if (f->bytes > 0)
        memcpy(t->data[t->count], f->data, f->bytes);
    t->frames[t->count++] = *f;
}

static void frames_come_back_in_order(void **state)
{
    bytes out = {0}, in = {0};
    taken t = {0};
    frames_put(&out, &(frame){FRAME_OUTPUT, 2, 70000, "abc", 3});
    frames_put(&out, &(frame){.type = FRAME_STOP});
    for (size_t i = 0; i + 1 < 12 + 3; i++) { /* byte by byte */
        bytes_add(&in, out.data + i, 1);
        assert_true(frames_each(&in, take, &t));
        assert_int_equal(t.count, 0);
    }
    bytes_add(&in, out.data + 14, out.end - 14);
    assert_true(frames_each(&in, take, &t));
    assert_int_equal(t.count, 2);
    assert_int_equal(t.frames[0].type, FRAME_OUTPUT);
    assert_int_equal(t.frames[0].stream, 2);
    assert_int_equal(t.frames[0].rank, 70000);
    assert_int_equal(t.frames[0].bytes, 3);
    assert_memory_equal(t.data[0], "abc", 3);
    assert_int_equal(t.frames[1].type, FRAME_STOP);
    assert_int_equal(bytes_count(&in), 0);
    bytes_free(&in);
    bytes_free(&out);
}

static void damaged_frames_are_refused(void **state)
{
    static const unsigned char heads[][12] = {
        {0},                                             /* no type        */
        {FRAME_TYPES},                                   /* unknown type   */
        {FRAME_OUTPUT, 1, 0, 0, 0, 0, 0, 0x80},          /* negative rank  */
        {FRAME_OUTPUT, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0}, /* too long  */
        {FRAME_JOB, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1},    /* too long  */
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        bytes in = {0};
        taken t = {0};
        bytes_add(&in, heads[i], sizeof heads[i]);
        assert_false(frames_each(&in, take, &t));
        assert_int_equal(t.count, 0);
        bytes_free(&in);
    }
}

static void ends_come_back_as_they_were(void **state)
{
    const rank_end end = {.rank = 5, .pid = 123456, .code = 255, .signal = 9, .why = "was lost"};
    rank_end got;
    bytes out = {0};
    taken t = {0};
    frame f = frames_of_end(FRAME_ENDED, &end);
    frames_put(&out, &f);
    assert_true(frames_each(&out, take, &t));
    assert_int_equal(t.count, 1);
    f = t.frames[0];
    f.data = t.data[0];
    assert_true(frames_get_end(&f, &got));
    assert_int_equal(got.rank, 5);
    assert_int_equal(got.pid, 123456);
    assert_int_equal(got.code, 255);
    assert_int_equal(got.signal, 9);
    assert_string_equal(got.why, "was lost");
    f.bytes = sizeof end - 1;
    assert_false(frames_get_end(&f, &got));
    f.bytes = sizeof end + 1;
    assert_false(frames_get_end(&f, &got));
    memset(t.data[0], 'x', sizeof end); /* a text without an end */
    f.bytes = sizeof end;
    assert_true(frames_get_end(&f, &got));
    assert_int_equal(strlen(got.why), sizeof got.why - 1);
    bytes_free(&out);
}

static void variables_are_replaced(void **state)
{
    texts list = {0};
    texts_add(&list, "A=1");
    texts_add(&list, "AB=2");
    texts_put(&list, "A=4");
    texts_put(&list, "B=5");
    assert_int_equal(list.count, 3);
    assert_string_equal(texts_get(&list, "A"), "4");
    assert_string_equal(texts_get(&list, "AB"), "2");
    assert_string_equal(texts_get(&list, "B"), "5");
    assert_null(texts_get(&list, "C"));
    assert_null(list.items[list.count]);
    texts_free(&list);
}

static bool has(const texts *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) == 0)
            return true;
    }
    return false;
}

/* In the order in which putenv() takes them, so that an export cannot hide a rank's own. */
static void an_environment_is_a_list_of_changes(void **state)
{
    texts list = {0};
    job j;
    share s;
    example(&j, &s);
    job_environment(&j, &s, 1, 7, &list);
    assert_string_equal(list.items[0], "NAME=value=more");
    assert_true(has(&list, "RING_RANK=4") && has(&list, "LOCAL_RANK=1"));
    assert_true(has(&list, "RING_SECRET_FD=7") && has(&list, "OMP_NUM_THREADS=1"));
    assert_true(has(&list, "RING_SECRET_FILE") && has(&list, "TORCHELASTIC_USE_AGENT_STORE"));
    texts_free(&list);
    job_environment(&j, &s, 1, -1, &list);
    assert_true(has(&list, "RING_SECRET_FD"));
    assert_null(texts_get(&list, "RING_SECRET_FD"));
    texts_free(&list);
    job_free(&j);
    share_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_comes_back_as_it_was),
        cmocka_unit_test(a_job_cut_anywhere_is_refused),
        cmocka_unit_test(a_job_with_a_changed_byte_is_whole_or_refused),
        cmocka_unit_test(frames_come_back_in_order),
        cmocka_unit_test(damaged_frames_are_refused),
        cmocka_unit_test(ends_come_back_as_they_were),
        cmocka_unit_test(variables_are_replaced),
        cmocka_unit_test(an_environment_is_a_list_of_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
