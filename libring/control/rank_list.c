/* SPDX-License-Identifier: Apache-2.0
 * Sets of ranks in few words. */
#include "rank_list.h"

#include <string.h>

static void add_range(int first, int last, char *out, size_t bytes)
{
    const size_t used = strlen(out);
    const char *comma = used > 0 ? ", " : "";
    if (used + 24 > bytes) {
        if (used >= 3 && out[used - 1] != '.')
            memcpy(out + used - 3, "...", 3);
    } else if (first == last) {
        text_format(out + used, bytes - used, "%s%d", comma, first);
    } else {
        text_format(out + used, bytes - used, "%s%d-%d", comma, first, last);
    }
}

int rank_list_text(int size, bool (*missing)(const void *context, int rank), const void *context,
                   char *out, size_t bytes)
{
    int count = 0;
    out[0] = '\0';
    for (int first = 0; first < size; first++) {
        if (!missing(context, first))
            continue;
        int last = first;
        while (last + 1 < size && missing(context, last + 1))
            last++;
        add_range(first, last, out, bytes);
        count += last - first + 1;
        first = last;
    }
    return count;
}
