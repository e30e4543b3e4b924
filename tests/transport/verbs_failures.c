/* SPDX-License-Identifier: Apache-2.0
 *
 * Any n-th call of a function of libibverbs fails: the link can do without it, moves to its other
 * rail, or breaks with a reason; nothing hangs, no value is wrong, and no object stays in the
 * adapter. Usage: test_transport_verbs FUNCTION... ; with RING_TEST_LONG each n up to 200, or up to
 * the number of calls, otherwise those up to 6 and a few of the others (draw.h). */
#include "draw.h"
#include "fake_ibverbs.h"
#include "heap.h"
#include "regions.h"
#include "traffic.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 200, ALWAYS = 6, DRAWN = 3 }; /* n */
enum { FRAMES = 120, BYTES = 20000, FROM_A = 0, FROM_B = 1 };

/* The links of one run, and the first error, which ends it. */
typedef struct run {
    transport_link *end[2];
    unsigned char *memory[2]; /* of the heap at the first, registered at the other */
    ring_status error;
} run;

static bool note(run *r, ring_status status)
{
    if (status == RING_OK || status == RING_IN_PROGRESS)
        return true;
    must(fail_text()[0] != '\0');
    r->error = status;
    return false;
}

/* ---- Opening ---- */

static transport_link *open_end(run *r, int rank, int fd)
{
    const transport_peer peer = {.rank = rank, .peer = rank == RANK_A ? RANK_B : RANK_A, .fd = fd};
    transport_link *l = NULL;
    return note(r, ends_transport()->open(&peer, &l)) ? l : NULL;
}

static bool open_both(run *r)
{
    int fds[2];
    ends_sockets(fds);
    r->end[0] = open_end(r, RANK_A, fds[0]);
    r->end[1] = open_end(r, RANK_B, fds[1]);
    const double give_up = clock_now() + PATIENCE;
    bool is_open = false;
    while (r->error == RING_OK && !is_open) {
        const ring_status a = r->end[0]->transport->progress(r->end[0]);
        if (!note(r, a))
            break;
        const ring_status b = r->end[1]->transport->progress(r->end[1]);
        is_open = note(r, b) && a == RING_OK && b == RING_OK;
        must(clock_now() < give_up);
    }
    return is_open;
}

/* ---- Traffic ---- */

/* Lets the adapter's thread run, too. */
static bool push(run *r)
{
    sched_yield();
    return note(r, r->end[0]->transport->progress(r->end[0])) &&
           note(r, r->end[1]->transport->progress(r->end[1]));
}

static bool send_frame(run *r, int from, const transport_frame *frame, const void *payload)
{
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    while ((status = r->end[from]->transport->send(r->end[from], frame, payload, false)) ==
           RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        if (!push(r))
            return false;
    }
    return note(r, status);
}

static bool receive(run *r, int from, const transport_frame **frame, const void **payload)
{
    const double give_up = clock_now() + PATIENCE;
    transport_link *l = r->end[1 - from];
    ring_status status;
    while ((status = l->transport->peek(l, frame, payload)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        if (!push(r))
            return false;
    }
    return note(r, status);
}

static bool carry(run *r, int from, uint64_t n)
{
    const transport_frame *got;
    const void *payload;
    const size_t bytes = n % 3 == 0 ? n % TRANSPORT_INLINE : scramble(n) % BYTES;
    const transport_frame frame = n % 3 == 0 ? frame_make_short(n, bytes) : frame_make(n, bytes);
    payload_fill(r->memory[from], n, BYTES);
    if (!send_frame(r, from, &frame, r->memory[from]) || !receive(r, from, &got, &payload))
        return false;
    frame_check(got, n, bytes);
    if (transport_behind(got) > 0)
        payload_check(payload, n, bytes);
    r->end[1 - from]->transport->consume(r->end[1 - from]);
    return true;
}

static bool sleep_a_little(run *r)
{
    transport_link *l = r->end[1];
    if (l->transport->arm(l, true))
        l->transport->disarm(l);
    return push(r);
}

/* The other end gets the memory of a reference. */
static bool fetch(run *r, uint64_t n)
{
    transport_link *a = r->end[0], *b = r->end[1];
    transport_frame frame = frame_make(n, BYTES);
    const transport_frame *got;
    const void *none;
    ticket over;
    frame.flags = FRAME_LONG | FRAME_REF;
    frame.ext.src_ref = a->transport->ref(a, r->memory[0], BYTES);
    payload_fill(r->memory[0], n, BYTES);
    if (frame.ext.src_ref == 0) /* not registered: it would be carried */
        return push(r);
    if (!send_frame(r, FROM_A, &frame, NULL) || !receive(r, FROM_A, &got, &none) ||
        b->transport->ref(b, r->memory[1], BYTES) == 0)
        return push(r);
    ticket_open(&over);
    if (!note(r, b->transport->get(b, r->memory[1], got->ext.src_ref, BYTES, &over)))
        return false;
    while (ticket_status(&over) == RING_IN_PROGRESS && push(r))
        continue;
    if (ticket_status(&over) != RING_OK)
        return false;
    payload_check(r->memory[1], n, BYTES);
    b->transport->consume(b);
    b->transport->release(b, n + 1);
    return true;
}

static void exchange(run *r)
{
    uint64_t n = 0;
    while (n < FRAMES && carry(r, FROM_A, n) && carry(r, FROM_B, n) && sleep_a_little(r))
        n++;
    while (n == FRAMES && r->error == RING_OK && fetch(r, n))
        n++;
}

/* ---- One run ---- */

static void expect_nothing_left(void)
{
    fake_ibverbs_counts left;
    void (*counters)(fake_ibverbs_counts *);
    *(void **)&counters = fake_ibverbs_function("fake_ibverbs_counters");
    must(counters != NULL);
    counters(&left);
    must(left.queue_pairs == 0 && left.registrations == 0 && left.rnr_naks == 0);
}

typedef enum outcome { FINE, FAULT, NO_SUCH_CALL } outcome; /* exit statuses: 0, 3, 4 */

static bool has_failed(void)
{
    int (*left)(void);
    *(void **)&left = fake_ibverbs_function("fake_ibverbs_failures_left");
    must(left != NULL);
    return left() == 0;
}

static int run_once(void)
{
    run r = {.error = RING_OK};
    char why[256] = "";
    if (transport_find("verbs")->probe(NULL, why, sizeof why)) {
        must_ok(heap_alloc((void **)&r.memory[0], BYTES));
        r.memory[1] = malloc(BYTES);
        must(r.memory[1] != NULL && ends_choose("verbs"));
        must_ok(region_add(r.memory[1], BYTES, REGION_PLAIN));
        if (open_both(&r))
            exchange(&r);
        for (int i = 0; i < 2; i++)
            if (r.end[i] != NULL)
                r.end[i]->transport->close(r.end[i]);
        must_ok(region_remove(r.memory[1]));
        must_ok(heap_free(r.memory[0]));
        free(r.memory[1]);
    } else {
        must(why[0] != '\0');
    }
    expect_nothing_left();
    if (!has_failed())
        return 4;
    return r.error == RING_OK ? 0 : 3;
}

static outcome outcome_of(int status, const char *spec)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != 0 && code != 3 && code != 4) {
        fprintf(stderr, "FAKE_IBVERBS=%s: ended with %x\n", spec, (unsigned)status);
        exit(1);
    }
    return code == 0 ? FINE : code == 3 ? FAULT : NO_SUCH_CALL;
}

/* Runs in a process of its own, which reads the setting again. */
static outcome run_with(const char *function, int nth, int devices)
{
    char spec[96];
    int status;
    snprintf(spec, sizeof spec, "delay=0,devices=%d,fail=%s:%d", devices, function, nth);
    fflush(NULL);
    const pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        setenv("FAKE_IBVERBS", spec, 1);
        exit(run_once());
    }
    must(waitpid(child, &status, 0) == child);
    return outcome_of(status, spec);
}

/* ---- All of a function ---- */

typedef struct tally {
    int calls, errors[2];
} tally;

/* @return false if the function is called less often. */
static bool try_call(const char *function, int nth, tally *t)
{
    bool was_called = false;
    for (int devices = 1; devices <= 2; devices++) {
        const outcome o = run_with(function, nth, devices);
        was_called |= o != NO_SUCH_CALL;
        t->errors[devices - 1] += o == FAULT;
    }
    t->calls += was_called;
    return was_called;
}

static void try_function(const char *function)
{
    tally t = {.calls = 0};
    uint64_t drawn = test_seed();
    const int last = test_is_long() ? MOST : ALWAYS;
    int nth = 1;
    while (nth <= last && try_call(function, nth, &t))
        nth++;
    for (int i = 0; nth == ALWAYS + 1 && i < DRAWN; i++)
        (void)try_call(function, nth + (int)test_draw(&drawn, MOST - ALWAYS), &t);
    printf("%s: of %d failures %d were errors with one device, %d with two\n", function, t.calls,
           t.errors[0], t.errors[1]);
}

int main(int argc, char **argv)
{
    if (getenv("FAKE_IBVERBS") == NULL && dlopen("libibverbs.so.1", RTLD_LAZY) == NULL) {
        printf("SKIPPED: there is no libibverbs.so.1 here\n");
        return SKIPPED;
    }
    for (int i = 1; i < argc; i++)
        try_function(argv[i]);
    return 0;
}
