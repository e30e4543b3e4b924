/* SPDX-License-Identifier: Apache-2.0
 * Starting, meeting, and looking at verdicts. */
#include "stage.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

stage *stage_new(int size, ring_status (*act)(stage *s, control_world **w))
{
    stage *s = shared_memory(sizeof *s);
    s->id = new_id();
    s->size = size;
    s->victim = -1;
    s->act = act;
    return s;
}

void stage_free(stage *s)
{
    shared_free(s, sizeof *s);
}

ring_status stage_meet(stage *s, int step, int count)
{
    const double deadline = clock_now() + 30;
    atomic_fetch_add(&s->arrived[step], 1);
    while (atomic_load(&s->arrived[step]) < count) {
        if (clock_now() > deadline)
            return fail(RING_ERR_INTERNAL, "%d of %d came to step %d",
                        atomic_load(&s->arrived[step]), count, step);
        clock_sleep(0.0005);
    }
    return RING_OK;
}

static ring_status act(stage *s, control_world **w)
{
    RING_TRY(control_agree(*w, RING_OK));
    control_start(*w, no_wake, NULL);
    for (int i = 0; i < STAGE_IDS && (*w)->rank == 0; i++)
        s->ids[i] = control_new_id(*w);
    RING_TRY(stage_meet(s, 0, s->size));
    return s->act(s, w);
}

ring_status stage_play(int rank, int size, void *context)
{
    stage *s = context;
    control_world *w;
    RING_TRY(join_by_id(&s->id, size, rank, 1, &w));
    const ring_status status = act(s, &w);
    const int before = count_fds();
    control_free(w);
    if (status == RING_OK && w != NULL && count_fds() >= before)
        return fail(RING_ERR_INTERNAL, "the membership did not end: %d descriptors, before %d",
                    count_fds(), before);
    return status;
}

void stage_end(stage *s, crew *c, unsigned dies)
{
    bool failed = false;
    for (int r = 0; r < s->size; r++) {
        const outcome *o = &c->outcomes[r];
        if ((dies & 1u << r) || o->status == RING_OK)
            continue;
        print_error("rank %d: status %d: %s\n", r, (int)o->status, o->text);
        failed = true;
    }
    assert_false(failed);
    crew_free(c);
    stage_free(s);
}

void stage_run(stage *s, unsigned dies)
{
    crew *c = crew_new(s->size);
    crew_processes(c, s->size, stage_play, s);
    stage_end(s, c, dies);
}

ring_status verdict_within(const control_world *w, double seconds)
{
    const double deadline = clock_now() + seconds;
    while (control_verdict(w) == RING_OK && clock_now() < deadline)
        clock_sleep(0.0005);
    const ring_status status = control_verdict(w);
    return status == RING_OK ? RING_OK : fail(status, "%s", control_text(w));
}

ring_status expect_verdict(const control_world *w, ring_status want, const char *part)
{
    const ring_status status = verdict_within(w, want == RING_OK ? 0 : 5);
    if (status == want && strstr(control_text(w), part) != NULL)
        return RING_OK;
    return fail(RING_ERR_INTERNAL,
                "rank %d of communicator %#llx: verdict %d \"%s\", wanted %d with \"%s\"", w->rank,
                (unsigned long long)w->id, (int)status, control_text(w), (int)want, part);
}

ring_status derive_bits(control_world *of, uint64_t id, unsigned bits, control_world **out)
{
    int ranks[32], count = 0;
    for (int r = 0; r < of->size; r++)
        if (bits & 1u << r)
            ranks[count++] = r;
    return control_derive(of, id, ranks, count, out);
}

int count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}
