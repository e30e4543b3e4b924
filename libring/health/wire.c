/* SPDX-License-Identifier: Apache-2.0
 * Fixed-size messages over one control connection, never blocking. */
#include "inside.h"

#include <errno.h>
#include <sys/socket.h>

static bool nothing_now(void)
{
    return errno == EAGAIN || errno == EINTR;
}

bool wire_read(wire *w, void (*heard)(health *h, wire *w), health *h)
{
    while (w->open) {
        char *at = (char *)&w->in + w->got;
        const ssize_t got = recv(w->fd, at, sizeof w->in - w->got, MSG_DONTWAIT);
        if (got <= 0)
            return got < 0 && nothing_now();
        w->heard = clock_now();
        w->got += (size_t)got;
        if (w->got < sizeof w->in)
            continue;
        w->got = 0;
        w->in.text[sizeof w->in.text - 1] = '\0';
        heard(h, w);
    }
    return true;
}

bool wire_busy(const wire *w)
{
    return w->sent < sizeof w->out;
}

/* A peer that is gone is judged by what can still be read from it, e.g. its goodbye. */
void wire_write(wire *w, bool (*next)(health *h, wire *w), health *h)
{
    while (w->open && !w->deaf) {
        if (!wire_busy(w)) {
            if (!next(h, w))
                return;
            w->sent = 0;
        }
        const char *at = (const char *)&w->out + w->sent;
        const ssize_t put = send(w->fd, at, sizeof w->out - w->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && nothing_now())
            return;
        w->deaf = put < 0;
        w->sent += put > 0 ? (size_t)put : 0;
    }
}

void wire_shut(wire *w)
{
    shutdown(w->fd, SHUT_WR);
    w->deaf = true;
}
