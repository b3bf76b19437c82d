
/* What follows from the sizes: all of them, the items of kernels, and the bytes of buffers, in whole lines of 64. */
typedef struct {
    int64_t size[$size_count];
    int64_t items[$kernel_count], steps[$step_count];
    size_t bytes[$buffer_count], start[$buffer_count];
    size_t temporary, local;
} gx_plan;

static void (*const gx_kernel[])(const int64_t *, gx_t *const *, gx_t *, int64_t, int64_t) = {$kernel_names};

#define GX_PLAN static inline __attribute__((unused))

GX_PLAN size_t gx_most(size_t a, size_t b) { return a > b ? a : b; }

/* SIZE_MAX stands for everything past all memory. */
static size_t gx_together(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

/* The bytes of an array. */
static size_t gx_bytes(int dimensions, const int64_t *extents)
{
    size_t bytes = sizeof(gx_t);
    int empty = 0;
    for (int d = 0; d < dimensions; d++) {
        const uint64_t extent = extents[d] > 0 ? (uint64_t)extents[d] : 1;
        empty |= extents[d] <= 0;
        if (extent > ((size_t)PTRDIFF_MAX - 63) / bytes) return SIZE_MAX;
        bytes *= (size_t)extent;
    }
    return empty ? 0 : (bytes + 63) / 64 * 64;
}

/* The bytes of some buffers. */
GX_PLAN size_t gx_total(const gx_plan *plan, int count, const int *buffers)
{
    size_t total = 0;
    for (int b = 0; b < count; b++) total = gx_together(total, plan->bytes[buffers[b]]);
    return total;
}

/* How many steps it takes from low to high. */
GX_PLAN int64_t gx_steps(int64_t low, int64_t high, int64_t step)
{
    return high < low ? 0 : (high - low) / gx_larger(step, 1) + 1;
}

/* How many items a grid has; INT64_MAX stands for all that is more. */
GX_PLAN int64_t gx_grid(int64_t outer, int64_t inner)
{
    return inner > 0 && outer > INT64_MAX / inner ? INT64_MAX : outer * inner;
}

static int gx_make_plan(gx_plan *plan, const NAME_sizes *sizes)
{
$plan
    for (int b = 0; b < $buffer_count; b++) {
        if (plan->bytes[b] == SIZE_MAX) return NAME_too_large;
    }
    if (gx_together(plan->temporary, plan->local) > (size_t)PTRDIFF_MAX - 63) return NAME_too_large;
    return NAME_ok;
}

/* Room for so many bytes that start at a multiple of 64. */
static size_t gx_room(size_t bytes) { return bytes ? bytes + 63 : 0; }

static char *gx_start(void *memory) { return (char *)memory + (64 - (uintptr_t)memory % 64) % 64; }

/* The arrays for the kernels, if none is missing. */
static int gx_place(gx_t **buffer, const gx_plan *plan, const NAME_inputs *in, const NAME_outputs *out,
                    void *workspace)
{
$place
    return NAME_ok;
}

size_t NAME_workspace_bytes(const NAME_sizes *sizes)
{
    gx_plan plan;
    return gx_make_plan(&plan, sizes) ? SIZE_MAX : gx_room(plan.temporary + plan.local);
}

int NAME_run(const NAME_sizes *sizes, const NAME_inputs *in, const NAME_outputs *out, void *workspace)
{
    gx_plan plan;
    gx_t *buffer[$buffer_count];
    int error = gx_make_plan(&plan, sizes);
    if (!error) error = gx_place(buffer, &plan, in, out, workspace);
    if (error) return error;
    if (plan.local && !workspace) return NAME_null_pointer;
    gx_t *const local = plan.local ? (void *)(gx_start(workspace) + plan.temporary) : NULL;
$stages
    return NAME_ok;
}
