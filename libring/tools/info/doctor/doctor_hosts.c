/* SPDX-License-Identifier: Apache-2.0
 * Examines several hosts: asks each host for its findings, compares the hosts, tests each pair of
 * them, and then asks again, to report the counters that have risen. */
#include "doctor_hosts.h"

#include "doctor_json.h"
#include "host_list.h"
#include "pair_test.h"
#include "runs.h"
#include "show.h"
#include "spawn.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_TIME = 15, HOSTS_MOST = 64, WRONG_USE = 2 };

/* Runs `ringinfo doctor --json` on all hosts at once. @param[out] runs  [count] the answers. */
static void ask_all(const doctor_wishes *w, const doctor_host *hosts, run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[280];
        texts *command = &runs[i].command;
        runs_begin(&runs[i], w, runs_host(hosts[i].name, name));
        runs_add_program(&runs[i], w, "ringinfo");
        texts_add(command, "doctor");
        texts_add(command, "--json");
        if (w->root != NULL)
            texts_add(command, "--root=%s", w->root);
        if (w->pkey != 0)
            texts_add(command, "--pkey=%d", w->pkey);
    }
    runs_all(runs, count, ANSWER_TIME);
}

/* @return the parsed answer of a host; NULL if it cannot be parsed. */
static cJSON *answer(const run *r)
{
    cJSON *told = cJSON_Parse(r->out);
    if (cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(told, "findings")))
        return told;
    cJSON_Delete(told);
    return NULL;
}

static const char *text_of(const cJSON *o, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return text != NULL ? text : "";
}

/* Repeats a host's warnings and failures; the other findings are only counted. */
static void repeat_findings(const doctor_host *h, report *r)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(h->told, "findings"), *one;
    size_t good = 0;
    cJSON_ArrayForEach(one, list)
    {
        const char *level = text_of(one, "level");
        const bool fails = strcmp(level, verdict_name(VERDICT_FAIL)) == 0;
        checking c = {.r = r, .section = h->name, .name = text_of(one, "name")};
        good += strcmp(level, verdict_name(VERDICT_OK)) == 0;
        if (!fails && strcmp(level, verdict_name(VERDICT_WARN)) != 0)
            continue;
        check_found(&c, "%s", text_of(one, "value"));
        check_judge(&c, fails ? VERDICT_FAIL : VERDICT_WARN, "%s", text_of(one, "why"));
        check_command(&c, "%s", text_of(one, "command"));
    }
    check_found(&(checking){.r = r, .section = h->name, .name = "checks"}, "%zu are OK", good);
}

static void take_answer(doctor_host *h, const run *asked, report *r)
{
    char why[400], reach[400];
    checking c = {.r = r, .section = h->name, .name = "answer"};
    h->began = asked->began;
    h->done = asked->done;
    h->told = answer(asked);
    if (h->told != NULL) {
        repeat_findings(h, r);
        return;
    }
    runs_why(asked, why, sizeof why);
    check_found(&c, "none");
    snprintf(reach, sizeof reach,
             asked->code == 0
                 ? "ssh %.255s ringinfo doctor --json   # does another program print there, too?"
                 : "ssh %.255s true   # must work without asking for a password",
             h->name);
    check_fail(&c, why, "%s", runs_remedy(why, reach));
}

/* Asks the hosts that have answered a second time, and reports counters that have risen. */
static void ask_again(const doctor_wishes *w, const doctor_host *hosts, size_t count, report *r)
{
    run runs[HOSTS_MOST];
    doctor_host there[HOSTS_MOST];
    size_t answered = 0;
    for (size_t i = 0; i < count; i++)
        if (hosts[i].told != NULL)
            there[answered++] = hosts[i];
    ask_all(w, there, runs, answered);
    for (size_t i = 0; i < answered; i++) {
        cJSON *after = answer(&runs[i]);
        if (after != NULL)
            compare_counters(&there[i], after, r);
        cJSON_Delete(after);
    }
    runs_free(runs, answered);
}

static cJSON *to_json(const doctor_host *hosts, size_t count, const report *r)
{
    cJSON *o = cJSON_CreateObject(), *all = cJSON_AddObjectToObject(o, "hosts");
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToObject(all, hosts[i].name,
                              hosts[i].told != NULL ? cJSON_Duplicate(hosts[i].told, true)
                                                    : cJSON_CreateNull());
    cJSON_AddItemToObject(o, "findings", doctor_findings(r));
    return o;
}

static int examine(const doctor_wishes *w, doctor_host *hosts, size_t count)
{
    report r = {0};
    run runs[HOSTS_MOST];
    ask_all(w, hosts, runs, count);
    for (size_t i = 0; i < count; i++)
        take_answer(&hosts[i], &runs[i], &r);
    runs_free(runs, count);
    compare_hosts(hosts, count, &r);
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (hosts[i].told != NULL && hosts[k].told != NULL)
                pair_test(w, &hosts[i], &hosts[k], &r);
    ask_again(w, hosts, count, &r);
    if (w->json)
        show_json_tree(to_json(hosts, count, &r));
    else
        show_findings(&r, w->color);
    for (size_t i = 0; i < count; i++)
        cJSON_Delete(hosts[i].told);
    const int status = report_status(&r);
    report_free(&r);
    return status;
}

static ring_status list_hosts(const doctor_wishes *w, host_list *list)
{
    RING_TRY(w->hosts != NULL ? hosts_parse_list(w->hosts, list)
                              : hosts_read_file(w->hostfile, list));
    list->adds_up = false; /* so that a host that is named twice is an error */
    RING_TRY(hosts_unify(list));
    return list->count <= HOSTS_MOST
               ? RING_OK
               : fail(RING_ERR_CONFIG,
                      "%zu hosts are too many, since each pair is tested; name at most %d",
                      list->count, HOSTS_MOST);
}

int doctor_hosts(const doctor_wishes *w)
{
    host_list list = {0};
    doctor_host hosts[HOSTS_MOST] = {{.name = NULL}};
    int status = WRONG_USE;
    spawn_prepare();
    const bool good = list_hosts(w, &list) == RING_OK;
    for (size_t i = 0; good && i < list.count; i++)
        hosts[i].name = list.items[i]->name;
    if (good)
        status = examine(w, hosts, list.count);
    else
        fprintf(stderr, "ringinfo: %s\n", fail_text());
    hosts_free(&list);
    return status;
}
