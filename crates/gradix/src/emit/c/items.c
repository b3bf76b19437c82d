
size_t NAME_local_bytes(const NAME_sizes *sizes)
{
    gx_plan plan;
    return gx_make_plan(&plan, sizes) ? SIZE_MAX : gx_room(plan.local);
}

int64_t NAME_items(int kernel, const NAME_sizes *sizes)
{
    gx_plan plan;
    return kernel < 0 || kernel >= NAME_kernels || gx_make_plan(&plan, sizes) ? -1 : plan.items[kernel];
}

int NAME_run_items(int kernel, int64_t begin, int64_t end, const NAME_sizes *sizes, const NAME_inputs *in,
                   const NAME_outputs *out, void *workspace, void *local)
{
    gx_plan plan;
    gx_t *buffer[$buffer_count];
    int error = gx_make_plan(&plan, sizes);
    if (!error) error = gx_place(buffer, &plan, in, out, workspace);
    if (error) return error;
    if (plan.local && !local) return NAME_null_pointer;
    if (kernel < 0 || kernel >= NAME_kernels) return NAME_bad_items;
    if (begin < 0 || begin > end || end > plan.items[kernel]) return NAME_bad_items;
    gx_kernel[kernel](plan.size, buffer, plan.local ? (void *)gx_start(local) : NULL, begin, end);
    return NAME_ok;
}
