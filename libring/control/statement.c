/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends this rank's statements as notes (bulletin.h), and passes the statements of other ranks to
 * the sink of their communicator.
 */
#include "statement.h"

#include "bulletin.h"

/* This rank's own statements are not passed to its sink. */
void statement_on_note(group *g, const control_message *note)
{
    const int rank = group_rank(g, note->rank);
    if (g->on_statement != NULL && rank >= 0 && rank != g->world.rank)
        g->on_statement(g->on_statement_context, rank, &note->body.statement);
}

void control_set_statement_sink(control_world *world, control_statement_sink *sink, void *context)
{
    group *g = group_of(world);
    control_lock();
    g->on_statement = sink;
    g->on_statement_context = context;
    if (sink != NULL)
        bulletin_replay(g, BULLETIN_RECENT);
    control_unlock();
}

void control_state(control_world *world, const control_statement *statement)
{
    control_message note;
    membership *m = group_of(world)->member;
    control_message_begin(&note, CONTROL_STATEMENT, m->world.rank);
    note.communicator = world->id;
    note.body.statement = *statement;
    control_lock();
    note.count = m->ranks[m->world.rank].statements.latest + 1;
    if (m->served)
        bulletin_post(m, &note);
    control_unlock();
}
