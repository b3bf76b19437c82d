/* Calls NAME once at small sizes, and shows the beginning of every result. */
#include "NAME.h"

#include <stdio.h>
#include <stdlib.h>

static void fill($number *values, int count)
{
    for (int i = 0; i < count; i++) values[i] = 1 / ($number)(i % 10 + 1);
}

static void show(const char *name, const $number *values, int count)
{
    printf("%s:", name);
    for (int i = 0; i < count && i < 8; i++) printf(" %g", (double)values[i]);
    puts(count > 8 ? " ..." : "");
}

int main(void)
{
    const NAME_sizes sizes = {$sizes};
$arrays    const NAME_inputs in = {$inputs};
    const NAME_outputs out = {$outputs};
    const size_t bytes = NAME_workspace_bytes(&sizes);
    void *workspace = bytes && bytes != SIZE_MAX ? malloc(bytes) : NULL;
$fill    const int error = NAME_run(&sizes, &in, &out, workspace);
    free(workspace);
    if (error) {
        fprintf(stderr, "NAME_run returns %d\n", error);
        return 1;
    }
$show    return 0;
}
