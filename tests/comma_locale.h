/* SPDX-License-Identifier: Apache-2.0
 *
 * comma_locale: a German locale, whose numbers have a decimal comma. It is made in a folder of its
 * own by localedef, since few machines have one, and holds from comma_locale_begin() until
 * comma_locale_end(). A test that gets none shows what it can without it, and then skips.
 */
#ifndef TESTS_COMMA_LOCALE_H
#define TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char comma_locale_folder[] = "/tmp/ring-locale-XXXXXX";

/* @return whether numbers have a comma now. */
static inline bool comma_locale_is_on(void)
{
    return strcmp(localeconv()->decimal_point, ",") == 0;
}

/* @return whether there is such a locale. */
static inline bool comma_locale_begin(void)
{
    char command[200];
    if (mkdtemp(comma_locale_folder) == NULL)
        return false;
    snprintf(command, sizeof command,
             "PATH=/usr/bin:/bin localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 2> /dev/null",
             comma_locale_folder);
    if (system(command) == -1)
        return false;
    setenv("LOCPATH", comma_locale_folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL && comma_locale_is_on();
}

static inline void comma_locale_end(void)
{
    char command[100];
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "/bin/rm -r %s", comma_locale_folder);
    if (system(command) != 0)
        fprintf(stderr, "%s is left\n", comma_locale_folder);
}

#endif
