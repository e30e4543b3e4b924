/* SPDX-License-Identifier: Apache-2.0
 * What would be started, as commands for a shell. */
#include "remote.h"
#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRET_SHOWN_FD = 0x7fff };

static bool is_plain(const char *word)
{
    return *word != '\0' && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789_@%+=:,./-") == strlen(word);
}

static void print_word(const char *word)
{
    char *quoted = is_plain(word) ? NULL : remote_quoted(word);
    fputs(quoted != NULL ? quoted : word, stdout);
    free(quoted);
}

static bool has_entry(char *const *list, const char *entry)
{
    for (; *list != NULL; list++) {
        if (strcmp(*list, entry) == 0)
            return true;
    }
    return false;
}

static void print_removed(char *const *base, const texts *environment)
{
    for (; *base != NULL; base++) {
        const int length = (int)strcspn(*base, "=");
        char *name = memory_text(*base, (size_t)length);
        if (texts_get(environment, name) == NULL)
            printf("-u %s ", name);
        free(name);
    }
}

/* Only what differs from the environment that is there anyway. */
static void print_rank(const setup *s, const share *of, int local)
{
    extern char **environ;
    static char *const nothing[] = {NULL};
    char *const *base = of->local ? environ : nothing;
    texts environment = {0};
    job_environment(&s->j, of, local, s->j.has_secret ? SECRET_SHOWN_FD : -1, base,
                    &environment);
    fputs("env ", stdout);
    print_removed(base, &environment);
    for (size_t i = 0; i < environment.count; i++) {
        const char *entry = environment.items[i];
        if (strncmp(entry, "RING_SECRET_FD=", strlen("RING_SECRET_FD=")) == 0)
            entry = "RING_SECRET_FD=<descriptor of the secret>";
        else if (has_entry(base, entry))
            continue;
        print_word(entry);
        putchar(' ');
    }
    for (size_t i = 0; i < s->j.argv.count; i++) {
        print_word(s->j.argv.items[i]);
        putchar(i + 1 < s->j.argv.count ? ' ' : '\n');
    }
    texts_free(&environment);
}

static void print_ssh(const setup *s, const options *o, const share *of)
{
    texts command = {0};
    remote_command(of->host, o->ssh_port, s->ringrun, &command);
    for (size_t i = 0; i < command.count; i++) {
        print_word(command.items[i]);
        putchar(i + 1 < command.count ? ' ' : '\n');
    }
    texts_free(&command);
}

void setup_print(const setup *s, const options *o)
{
    for (size_t i = s->first; i < s->end; i++) {
        const share *of = &s->places.shares[i];
        if (!of->local) {
            printf("# ranks %d to %d of %d on %s, through\n", of->first_rank,
                   of->first_rank + of->ranks - 1, s->j.ranks, of->host);
            print_ssh(s, o, of);
        }
        for (int local = 0; local < of->ranks; local++) {
            printf("# rank %d of %d on %s%s\n", of->first_rank + local, s->j.ranks, of->host,
                   s->j.binding == BIND_CORE ? ", bound to the core of its slot" : "");
            print_rank(s, of, local);
        }
    }
    if (s->ask_address)
        puts("# MASTER_ADDR becomes the address that the first host tells");
}
