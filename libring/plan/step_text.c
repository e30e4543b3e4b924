/* SPDX-License-Identifier: Apache-2.0
 * Writes steps and whole plans as text, for people who read a plan or a message of the checker. */
#include "step_text.h"

#include <string.h>

const char *step_kind_name(plan_kind kind)
{
    static const char *const names[] = {
        [PLAN_STEP_SEND] = "send", [PLAN_STEP_RECV] = "recv", [PLAN_STEP_COPY] = "copy",
        [PLAN_STEP_FOLD] = "fold", [PLAN_STEP_WAIT] = "wait",
    };
    return (unsigned)kind <= PLAN_STEP_WAIT ? names[kind] : "?";
}

const char *step_buffer_name(plan_buffer buffer)
{
    static const char *const names[] = {
        [PLAN_SRC] = "src", [PLAN_DST] = "dst", [PLAN_WIRE] = "wire", [PLAN_SCRATCH] = "scratch"};
    return (unsigned)buffer <= PLAN_SCRATCH ? names[buffer] : "?";
}

const char *step_range_text(plan_loc loc, char out[STEP_RANGE_TEXT])
{
    if (loc.chunks == 1)
        snprintf(out, STEP_RANGE_TEXT, "%d", loc.chunk);
    else
        snprintf(out, STEP_RANGE_TEXT, "%d..%d", loc.chunk, loc.chunk + loc.chunks - 1);
    return out;
}

/* A buffer of text, which ends in "..." if the text does not fit. */
typedef struct line {
    char *out;
    size_t size, used;
} line;

static void append(line *l, const char *format, ...) RING_PRINTF(2, 3);

static void append(line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(l->out + l->used, l->size - l->used, format, args);
    va_end(args);
    if (length > 0 && (size_t)length < l->size - l->used)
        l->used += (size_t)length;
    else if (l->size > 4)
        memcpy(l->out + l->size - 4, "...", 4);
}

static void append_loc(line *l, const plan_cursor *at, plan_loc loc)
{
    if (loc.rank != at->plan->rank)
        append(l, "r%d:", loc.rank);
    char range[STEP_RANGE_TEXT];
    append(l, "%s[%s]", step_buffer_name(loc.buffer), step_range_text(loc, range));
    append(l, loc.finish ? " finished" : "");
}

static void append_operands(line *l, const plan_cursor *at, const plan_step *step)
{
    for (int i = 0; i < step->ins; i++) {
        append(l, i == 0 ? " " : " + ");
        append_loc(l, at, plan_input(at, step, i));
    }
    for (int i = 0; i < step->outs; i++) {
        append(l, i == 0 ? " -> " : ", ");
        append_loc(l, at, plan_output(at, step, i));
    }
}

void step_text(const plan_cursor *at, char *out, size_t size)
{
    line l = {.out = out, .size = size};
    const plan_step *step = plan_at(at);
    if (step == NULL) {
        append(&l, "end");
        return;
    }
    append(&l, "%s%s", step_kind_name(step->kind), step->eager ? " eager" : "");
    if (step->kind == PLAN_STEP_WAIT && step->back > 0)
        append(&l, " for r%d except the last %d", step->peer, step->back);
    else if (step->kind == PLAN_STEP_WAIT)
        append(&l, " for r%d", step->peer);
    else
        append_operands(&l, at, step);
}

void plan_print_steps(const plan *p, FILE *out)
{
    plan_cursor at = plan_begin(p);
    fprintf(out, "rank %d of %d: %s by %s, %d chunk%s, %lld step%s\n", p->rank, p->ranks,
            plan_collective_name(p->collective), p->algorithm, p->chunks, plural(p->chunks),
            (long long)plan_length(p), plural((double)plan_length(p)));
    for (long long index = 0; plan_at(&at) != NULL; index++, plan_next(&at)) {
        char text[2048];
        step_text(&at, text, sizeof text);
        fprintf(out, "%5lld  %s\n", index, text);
    }
}
