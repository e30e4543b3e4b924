/* SPDX-License-Identifier: Apache-2.0
 * The rules that the ranks' records must keep, and known findings. */
#include "start_schedule.h"

#include <stdio.h>
#include <string.h>

/* ---- Faults and ranks ------------------------------------------------------------ */

static bool touches(const fault *f, int rank)
{
    if (!f->happened)
        return false;
    if (f->kind == CUT)
        return now.host_of[f->rank] != now.host_of[f->other] &&
               (now.host_of[f->rank] == now.host_of[rank] ||
                now.host_of[f->other] == now.host_of[rank]);
    if (f->kind == HOST)
        return now.host_of[f->rank] == now.host_of[rank];
    return f->rank == rank || (f->kind == BOTH && f->other == rank);
}

static bool is_dead(int rank)
{
    for (int i = 0; i < now.fault_count; i++)
        if ((now.faults[i].kind <= HOST || now.faults[i].ends) && touches(&now.faults[i], rank))
            return true;
    return false;
}

/* A rank that leaves waits a second for its neighbours, and not for paused ones. */
static bool is_goodbye_lost(const fault *f)
{
    for (int r = 0; r < now.size && f->kind == PAUSE && f->happened; r++)
        if (now.records[r].left_at > f->at - 1 && now.records[r].left_at < f->at + f->seconds + 0.4)
            return true;
    return false;
}

/* It was cut off or stopped for a while that others may take for its end. */
static bool was_silent(int rank)
{
    for (int i = 0; i < now.fault_count; i++)
        if (is_goodbye_lost(&now.faults[i]))
            return true;
    for (int i = 0; i < now.fault_count; i++)
        if ((now.faults[i].kind == CUT || now.faults[i].kind == STOP) &&
            touches(&now.faults[i], rank) && now.faults[i].seconds > PEER_TIMEOUT / 2)
            return true;
    return false;
}

static bool is_stopped(int rank)
{
    for (int i = 0; i < now.fault_count; i++)
        if (now.faults[i].kind == STOP && touches(&now.faults[i], rank) &&
            now.faults[i].seconds >= SIM_NEVER)
            return true;
    return false;
}

static bool has_refused(int rank)
{
    for (int i = 0; i < now.fault_count; i++)
        if (now.faults[i].kind == REFUSE && touches(&now.faults[i], rank))
            return true;
    return false;
}

static bool is_harmful(const fault *f)
{
    if (!f->happened)
        return false;
    if (f->kind == CUT && now.host_of[f->rank] == now.host_of[f->other])
        return false;
    return f->kind == PAUSE ? is_goodbye_lost(f) : f->seconds > PEER_TIMEOUT / 2;
}

/* Faults, where one that ends several ranks counts as that many. */
static int count_harms(void)
{
    int count = 0;
    for (int i = 0; i < now.fault_count; i++) {
        const fault *f = &now.faults[i];
        for (int r = 0; r < now.size && is_harmful(f) && f->kind <= HOST; r++)
            count += touches(f, r);
        count += is_harmful(f) && f->kind > HOST;
        count += is_harmful(f) && f->kind == CUT; /* each side loses the other */
    }
    return count;
}

/* Findings of kinds that are known: counted, and failures with --strict only.
 *
 * TWO_VERDICTS: a loss decides on each rank as soon as it hears of it. Of two at once some ranks
 * name the one, some the other. For example seed 907 --strict.
 * So it is if one of them is a rank whose start has failed, which says no goodbye.
 * TWO_TEXTS: ranks that find one silent rank in two ways, by its beats and by dialing it, name it
 * with two reasons.
 * HUB_GONE: ranks below one that leaves are watched and served by it until they have another way
 * up. If it is killed or stopped in that time (50 ms), none misses them: one that ends then is
 * taken for one that left, and others wait for it until their deadline; so for a decision that only
 * such a rank had. If there is none above but ranks that leave, the same goes for the lowest that
 * stays. Seeds 1759, 1790, 2823 --strict. */
typedef enum known_kind { TWO_VERDICTS, TWO_TEXTS, HUB_GONE, KNOWN_KINDS } known_kind;
static const char *const known_names[KNOWN_KINDS] = {"two ranks lost at once, two verdicts",
                                                     "one loss, two texts",
                                                     "rank 0 gone, and another rank with it"};
static unsigned long known_count[KNOWN_KINDS];
bool judge_is_strict;

static bool is_known(known_kind kind)
{
    if (!judge_is_strict)
        known_count[kind]++;
    return !judge_is_strict;
}

static bool complain(char *why, size_t bytes, int rank, const end *e, const char *what)
{
    text_format(why, bytes, "rank %d: %s (status %d: %s)", rank, what, (int)e->status, e->text);
    return false;
}

/* @return the rank that a verdict blames; -1: none. */
static int blamed_by(const end *e)
{
    int blamed = -1;
    return strstr(e->text, "was lost") != NULL && sscanf(e->text, "rank %d", &blamed) == 1 ? blamed
                                                                                           : -1;
}

/* @return false for a verdict that names a rank that was well. A rank that was itself away for long
 * finds that others have gone without it. */
static bool judge_blame(int rank, const end *e)
{
    if (was_silent(rank))
        return true;
    const int blamed = blamed_by(e);
    return blamed < 0 || (blamed < now.size && (is_dead(blamed) || was_silent(blamed)));
}

/* A rank whose start fails by a verdict says no goodbye: to ranks that are past the start, and hear
 * of that verdict later, it is lost. */
static bool names_failed_start(const end *e)
{
    const int blamed = blamed_by(e);
    return blamed >= 0 && blamed < now.size && !is_dead(blamed) && !now.records[blamed].linked &&
           now.records[blamed].ends[ALL].status != RING_OK && is_known(TWO_VERDICTS);
}

/* It came to the start after rank 0 had failed and gone, which waits a second for such ranks. */
static bool came_too_late(const record *r)
{
    const int rank = (int)(r - now.records);
    bool hampered = now.delay[rank] > 0.9;
    for (int i = 0; i < now.fault_count; i++)
        hampered = hampered || ((now.faults[i].kind == CUT || now.faults[i].kind == STOP) &&
                                touches(&now.faults[i], rank));
    return hampered && r->joined == RING_ERR_TIMEOUT;
}

/* @return false for a status that no fault of the schedule has. */
static bool judge_status(int rank, int which)
{
    const ring_status status = now.records[rank].ends[which].status;
    bool lost = false, known = status == RING_OK || came_too_late(&now.records[rank]);
    for (int i = 0; i < now.fault_count; i++) {
        const fault_kind kind = now.faults[i].kind;
        if (!is_harmful(&now.faults[i]))
            continue;
        lost = lost || kind < REPORT || (now.faults[i].ends && now.faults[i].in != which) ||
               (kind == REFUSE && now.faults[i].rank == 0);
        known = known || ((kind == REPORT || kind == ALL_REPORT) && status == RING_ERR_ARGUMENT) ||
                (kind == REFUSE && status == RING_ERR_MEMORY) ||
                (kind == FAIL && status == RING_ERR_CONFIG);
    }
    if (status == RING_ERR_TIMEOUT && now.fault_count == 2) /* a refusal that a cut held up */
        lost = lost || now.faults[0].kind == REFUSE || now.faults[1].kind == REFUSE;
    return known || (lost && (status == RING_ERR_PEER || status == RING_ERR_TIMEOUT));
}

/* Faults that a shrink gets over. */
static bool only_deaths(void)
{
    for (int i = 0; i < now.fault_count; i++)
        if (now.faults[i].happened && now.faults[i].kind > BOTH && now.faults[i].kind != REPORT &&
            now.faults[i].kind != ALL_REPORT)
            return false;
    return true;
}

/* The part ends with a rank of its own, or by a report in it. */
static bool judge_part(int rank, const end *e)
{
    const int blamed = blamed_by(e);
    return e->status == RING_OK || was_silent(rank) || blamed < 0 || now.in_part[blamed];
}

static bool is_hub_gone(void)
{
    return (is_dead(0) || is_stopped(0) || now.records[0].over) && is_known(HUB_GONE);
}

/* Then all takes longer. */
static bool has_paused(void)
{
    for (int i = 0; i < now.fault_count; i++)
        if (now.faults[i].kind == PAUSE && now.faults[i].happened)
            return true;
    return false;
}

/* Then a report may be without an answer for 0.2 s, and hold. */
static bool were_answers_late(void)
{
    for (int i = 0; i < now.fault_count; i++)
        if (now.faults[i].kind >= STOP && now.faults[i].kind <= PAUSE && now.faults[i].happened)
            return true;
    return false;
}

/* @return the fault of which a verdict is, NULL: it is not known, or one of two. */
static const fault *cause_of(const end *e)
{
    const fault *found = NULL;
    const int blamed = blamed_by(e);
    int count = 0;
    for (int i = 0; i < now.fault_count; i++) {
        const fault *f = &now.faults[i];
        const bool reports = f->kind == REPORT || f->kind == ALL_REPORT;
        if (!f->happened || (reports ? e->status != RING_ERR_ARGUMENT
                                     : blamed < 0 || f->kind >= PAUSE || !touches(f, blamed)))
            continue;
        found = f;
        count++;
    }
    return count == 1 ? found : NULL;
}

/* A report is known soon, around ranks that are silent. So is a death, unless another fault hides
 * it. Silent ranks are known after their time-out, and a rank beyond them after another time-out
 * for each. */
static bool judge_speed(int rank, const end *e)
{
    static const double most[] = {[KILL] = 1, [BOTH] = 1.5, [REPORT] = 1, [ALL_REPORT] = 1};
    const fault *f = cause_of(e);
    if (f == NULL || f->ends || e->wakes != 1 || was_silent(rank) || has_paused())
        return true;
    const bool is_hidden = f->kind < REPORT && (f->kind > BOTH || now.fault_count > 1);
    return e->woken_at - f->at < (is_hidden ? 3 * PEER_TIMEOUT + 1 : most[f->kind]);
}

/* Each communicator that ends wakes its ranks once. */
static bool judge_end(int rank, int which, char *why, size_t bytes)
{
    const end *e = &now.records[rank].ends[which];
    if (count_harms() == 0 && e->status != RING_OK)
        return complain(why, bytes, rank, e, "unfounded: there was no fault");
    if (e->wakes != (now.records[rank].linked && e->status != RING_OK))
        return complain(why, bytes, rank, e, "woken in vain, not, or again");
    if (!judge_speed(rank, e))
        return complain(why, bytes, rank, e, "slow");
    if (which == PART && !judge_part(rank, e))
        return complain(why, bytes, rank, e, "the end of a communicator that lives on");
    const bool is_true = judge_blame(rank, e) ||
                         (now.records[blamed_by(e)].left_at < e->woken_at && is_hub_gone());
    return (is_true && judge_status(rank, which)) || names_failed_start(e) ||
           complain(why, bytes, rank, e, "wrong blame");
}

static bool judge_rank(int rank, char *why, size_t bytes)
{
    record *r = &now.records[rank];
    if (is_dead(rank) || is_stopped(rank))
        return true;
    if (!r->over && !r->broken)
        life_break(r, "unbounded: %s has lasted %.3f s", r->call != NULL ? r->call : "start",
                   sim_now() - r->begun);
    if (r->over && sim_free_all(rank) > 0)
        life_break(r, "kept: memory");
    if (only_deaths() && r->shrunk != RING_OK)
        life_break(r, "shrink returned %d: %s", (int)r->shrunk, r->shrink_text);
    if (count_harms() == 0 && !r->linked)
        life_break(r, "unfounded: it did not start");
    if (r->broken)
        return (r->needs_way && is_hub_gone()) || complain(why, bytes, rank, &r->ends[ALL], r->why);
    return judge_end(rank, ALL, why, bytes) && judge_end(rank, PART, why, bytes);
}

/* Reports of ranks that have not dialed another rank yet instead of one that left: each is its own
 * top's. */
static bool are_parted(void)
{
    for (int i = 0; i < now.fault_count; i++)
        for (int r = 0; r < now.size && now.faults[i].kind == ALL_REPORT; r++)
            if (now.faults[i].at > now.records[r].left_at &&
                now.faults[i].at < now.records[r].left_at + 0.5)
                return is_known(HUB_GONE);
    return false;
}

/* Ranks that join hear of each other by rank 0 alone: without it each fails by itself. While some
 * have all cards and others do not, the texts of one loss differ. */
static bool is_alike(const record *a, const record *b, int which)
{
    const end *x = &a->ends[which], *y = &b->ends[which];
    const bool same = x->status == y->status && blamed_by(x) == blamed_by(y);
    if (!same && are_parted())
        return true;
    if (a->linked && b->linked)
        return same &&
               (strcmp(x->text, y->text) == 0 || (blamed_by(x) >= 0 && is_known(TWO_TEXTS)));
    if (is_dead(0) || was_silent(0) || has_refused(0) || came_too_late(a) || came_too_late(b))
        return true;
    return same;
}

/* Of ranks that were there all the time. */
static bool judge_same(int which, char *why, size_t bytes)
{
    const record *first = NULL;
    for (int r = 0; r < now.size; r++) {
        const record *a = &now.records[r], *b = first != NULL ? first : a;
        if (is_dead(r) || was_silent(r) || has_refused(r) || a->needs_way ||
            a->ends[which].status == RING_OK)
            continue;
        if (!is_alike(a, b, which) && !names_failed_start(&a->ends[which]) &&
            !names_failed_start(&b->ends[which]) &&
            !((count_harms() > 1 || were_answers_late()) && is_known(TWO_VERDICTS))) {
            text_format(why, bytes, "two verdicts: rank %d: %d %s; rank %d: %d %s",
                        (int)(b - now.records), (int)b->ends[which].status, b->ends[which].text, r,
                        (int)a->ends[which].status, a->ends[which].text);
            return false;
        }
        first = b;
    }
    return true;
}

/* Where ranks died and nothing else happened, all that shrank go on together. */
static bool judge_shrunk(char *why, size_t bytes)
{
    const record *first = NULL;
    int count = 0;
    for (int r = 0; r < now.size; r++)
        count += now.records[r].new_size > 0 && !is_dead(r) && !was_silent(r);
    for (int r = 0; r < now.size; r++) {
        const record *a = &now.records[r];
        if (is_dead(r) || was_silent(r) || a->new_size == 0)
            continue;
        first = first != NULL ? first : a;
        if ((a->new_id == first->new_id && a->new_size == first->new_size &&
             a->new_size >= count) ||
            ((is_dead(0) || is_dead((r - 1) / CONTROL_FANOUT)) && is_known(HUB_GONE)))
            continue;
        text_format(why, bytes, "two shrunk ones: rank %d: %llx of %d ranks, another: %llx of %d",
                    r, (unsigned long long)a->new_id, a->new_size,
                    (unsigned long long)first->new_id, first->new_size);
        return false;
    }
    return true;
}

bool judge(char *why, size_t bytes)
{
    for (int r = 0; r < now.size; r++)
        if (!judge_rank(r, why, bytes))
            return false;
    return judge_same(ALL, why, bytes) && judge_same(PART, why, bytes) && judge_shrunk(why, bytes);
}

void judge_print_known(void)
{
    for (int k = 0; k < KNOWN_KINDS; k++)
        printf("known: %s: %lu\n", known_names[k], known_count[k]);
}
