/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the table G(i,j), which shows the ranks whose gradients each chunk of each rank contains,
 * before the first transfer and after each transfer. In a transfer every pair of ranks moves at
 * most one message, which was sent before the transfer. A rank's row shows the latest symbol of
 * each chunk.
 */
#include "checker.h"

#include <string.h>

enum { CELL_TEXT = 40, FULL_SUM_TEXT = 20 };

typedef struct table {
    simulation sim;
    FILE *out; /* NULL: only measure the widths of cells */
    int chunks, width, rounds;
    bool short_names; /* "G03" is unambiguous while all numbers have one digit */
} table;

/* ---- Cells --------------------------------------------------------------------- */

static bool name_sum(const table *t, const int32_t *order, int count, int chunk, char *cell)
{
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char name[32];
        const int length = snprintf(name, sizeof name, t->short_names ? "G%d%d" : "G(%d,%d)",
                                    order[i], chunk);
        if (used + (size_t)length + 1 > FULL_SUM_TEXT)
            return false;
        used += (size_t)snprintf(cell + used, CELL_TEXT - used, "%s%s", i > 0 ? "+" : "", name);
    }
    return true;
}

/* Prints ranks that are consecutive on the ring as a range. For other ranks, prints their
 * number. */
static void name_range(const table *t, const int32_t *order, int count, int chunk, char *cell)
{
    bool run_of_ranks = true;
    for (int i = 1; i < count; i++)
        run_of_ranks &= order[i] == (order[i - 1] + 1) % t->sim.ranks;
    if (run_of_ranks)
        snprintf(cell, CELL_TEXT, "G(%d..%d,%d)", order[0], order[count - 1], chunk);
    else
        snprintf(cell, CELL_TEXT, "%d ranks' G(*,%d)", count, chunk);
}

/* @param[out] order  the ranks of a symbol in combining order. @return their number. */
static int ranks_of(const table *t, int32_t id, int32_t *order)
{
    int32_t postfix[2 * 64 - 1];
    const int length = symbol_postfix(&t->sim.symbols, id, postfix);
    int count = 0;
    for (int i = 0; i < length; i++)
        if (postfix[i] >= 0)
            order[count++] = postfix[i];
    return count;
}

static void name_symbol(const table *t, int32_t id, char *cell)
{
    int32_t order[64];
    if (id == SYMBOL_NONE) {
        strcpy(cell, ".");
        return;
    }
    const symbol *v = &t->sim.symbols.nodes[id];
    const int count = ranks_of(t, id, order);
    if (v->kind == SYMBOL_FINISHED && count == t->sim.ranks)
        snprintf(cell, CELL_TEXT, t->short_names ? "G*%d" : "G(*,%d)", v->chunk);
    else if (!name_sum(t, order, count, v->chunk, cell))
        name_range(t, order, count, v->chunk, cell);
}

static int32_t held(const table *t, int rank, int chunk)
{
    return t->sim.latest[rank * t->chunks + chunk];
}

/* ---- Rows ---------------------------------------------------------------------- */

static void measure(table *t)
{
    for (int rank = 0; rank < t->sim.ranks; rank++) {
        for (int chunk = 0; chunk < t->chunks; chunk++) {
            char cell[CELL_TEXT];
            name_symbol(t, held(t, rank, chunk), cell);
            if ((int)strlen(cell) > t->width)
                t->width = (int)strlen(cell);
        }
    }
}

static void print_row(const table *t, int rank)
{
    fprintf(t->out, "rank %-3d", rank);
    for (int chunk = 0; chunk < t->chunks; chunk++) {
        char cell[CELL_TEXT];
        name_symbol(t, held(t, rank, chunk), cell);
        fprintf(t->out, "  %-*s", chunk + 1 < t->chunks ? t->width : 0, cell);
    }
    fputc('\n', t->out);
}

static void show(table *t, int round)
{
    if (t->out == NULL) {
        measure(t);
        return;
    }
    if (round == 0)
        fprintf(t->out, "%s: chunk j of rank i; %s: chunk j of all ranks, combined\n\nbefore\n",
                t->short_names ? "Gij" : "G(i,j)", t->short_names ? "G*j" : "G(*,j)");
    else
        fprintf(t->out, "\nafter transfer %d of %d\n", round, t->rounds);
    for (int rank = 0; rank < t->sim.ranks; rank++)
        print_row(t, rank);
}

static ring_status walk_rounds(table *t)
{
    bool moved;
    RING_TRY(sim_round(&t->sim, &moved)); /* posts sends that wait for no message */
    show(t, 0);
    for (int round = 1;; round++) {
        RING_TRY(sim_round(&t->sim, &moved));
        if (!moved)
            return sim_finish(&t->sim);
        t->rounds = round > t->rounds ? round : t->rounds;
        show(t, round);
    }
}

static ring_status walk(table *t, const plan *const *plans, int ranks, FILE *out)
{
    t->out = out;
    ring_status status = sim_open(&t->sim, plans, ranks, (sim_mode){.by_rounds = true});
    if (status == RING_OK)
        status = walk_rounds(t);
    sim_close(&t->sim);
    return status;
}

ring_status plan_print_table(const plan *const *plans, int ranks, FILE *out)
{
    RING_TRY(check_shape(plans, ranks));
    table t = {.chunks = plans[0]->chunks};
    t.short_names = ranks <= 10 && t.chunks <= 10;
    RING_TRY(walk(&t, plans, ranks, NULL)); /* widths and the number of rounds */
    RING_TRY(walk(&t, plans, ranks, out));
    return ferror(out) ? fail(RING_ERR_SYSTEM, "writing the table: %m") : RING_OK;
}
