
namespace gx_host {
namespace {

/* What follows from the sizes: all of them, the blocks of kernels, and the bytes of buffers, in whole lines of 64. */
struct gx_plan {
    int64_t size[$size_count];
    int64_t items[$kernel_count], steps[$step_count];
    size_t bytes[$buffer_count], start[$buffer_count];
    size_t temporary;
};

inline int64_t gx_larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t gx_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t gx_floor_div(int64_t a, int64_t c) { return a / c - (a % c < 0); }

/* SIZE_MAX stands for everything past all memory. */
inline size_t gx_together(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

inline size_t gx_most(std::initializer_list<size_t> all)
{
    size_t most = 0;
    for (size_t one : all) most = one > most ? one : most;
    return most;
}

/* The bytes of an array. */
inline size_t gx_bytes(std::initializer_list<int64_t> extents)
{
    size_t bytes = sizeof(gx_t);
    bool empty = false;
    for (int64_t extent : extents) {
        empty |= extent <= 0;
        if (extent > 0 && (uint64_t)extent > ((size_t)PTRDIFF_MAX - 63) / bytes) return SIZE_MAX;
        if (extent > 0) bytes *= (size_t)extent;
    }
    return empty ? 0 : (bytes + 63) / 64 * 64;
}

/* How many steps it takes from low to high. */
inline int64_t gx_steps(int64_t low, int64_t high, int64_t step)
{
    return high < low ? 0 : (high - low) / gx_larger(step, 1) + 1;
}

/* How many items a grid has; INT64_MAX stands for all that is more. */
inline int64_t gx_grid(int64_t outer, int64_t inner)
{
    return inner > 0 && outer > INT64_MAX / inner ? INT64_MAX : outer * inner;
}

/* Whether whole numbers of 32 bits hold all that kernels compute. */
inline bool gx_fits(const gx_plan &plan)
{
    const double limits[] = {$narrow};
    double size = 1, elements = 1;
    for (int64_t one : plan.size) size = one > size ? (double)one : -one > size ? -(double)one : size;
    for (size_t bytes : plan.bytes) elements = bytes / sizeof(gx_t) > elements ? (double)(bytes / sizeof(gx_t)) : elements;
    const double indices = limits[0] * size + limits[1], step = limits[2] * size + limits[3];
    return elements + step < limits[4] && indices + step < limits[4];
}

inline int gx_make_plan(gx_plan *plan, const NAME_sizes *sizes)
{
    plan->temporary = 0;
$plan
    for (size_t bytes : plan->bytes) {
        if (bytes == SIZE_MAX) return NAME_too_large;
    }
    if (plan->temporary > (size_t)PTRDIFF_MAX || (sizeof(gx_whole) == 4 && !gx_fits(*plan))) return NAME_too_large;
    return NAME_ok;
}

/* The workspace starts at a multiple of 64 already. */
inline char *gx_start(void *workspace) { return (char *)workspace; }

/* Pointers for the kernels, if none is missing. */
inline int gx_place(gx_t **buffer, const gx_plan *plan, const NAME_inputs *in, const NAME_outputs *out, void *workspace)
{
$place
    return NAME_ok;
}

/* Starts all blocks of a kernel, in as many launches as it takes. */
inline bool gx_launch(void (*kernel)(const gx_call), unsigned threads, int64_t items, const gx_plan &plan,
                      gx_t *const *buffer, cudaStream_t stream)
{
    gx_call call;
    for (int i = 0; i < $size_count; i++) call.size[i] = (gx_whole)plan.size[i];
    for (int i = 0; i < $buffer_count; i++) call.buffer[i] = buffer[i];
    const int64_t most = 0x7fffffff;
    for (int64_t begin = 0; begin < items; begin += most) {
        call.begin = (gx_whole)begin;
        void *arguments[] = {&call};
        const dim3 blocks((unsigned)gx_smaller(items - begin, most));
        if (cudaLaunchKernel((const void *)kernel, blocks, dim3(threads), arguments, 0, stream) != cudaSuccess) return true;
    }
    return false;
}

} // namespace
} // namespace gx_host

extern "C" size_t NAME_workspace_bytes(const NAME_sizes *sizes)
{
    gx_host::gx_plan plan;
    return gx_host::gx_make_plan(&plan, sizes) ? SIZE_MAX : plan.temporary;
}

extern "C" int NAME_run(const NAME_sizes *sizes, const NAME_inputs *in, const NAME_outputs *out, void *workspace, cudaStream_t stream)
{
    using namespace gx_host;
    gx_plan plan;
    gx_t *buffer[$buffer_count];
    int error = gx_make_plan(&plan, sizes);
    if (!error) error = gx_place(buffer, &plan, in, out, workspace);
    if (error) return error;
$stages
    return NAME_ok;
}
