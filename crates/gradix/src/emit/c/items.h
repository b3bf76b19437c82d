/* With threads of your own: NAME_run is the same as all items of kernel 0, then all items of kernel 1, and so on. The
 * items of one kernel are independent of each other, so that threads may share them in any way, and the results are
 * the same bits. All threads have the same workspace, and each has local memory of its own.
 */
enum { NAME_kernels = $kernels };

/* How many items a kernel has; -1 if there is no such kernel, or no run at these sizes. */
int64_t NAME_items(int kernel, const NAME_sizes *sizes);

/* How many bytes of local memory a thread needs; as for the workspace. */
size_t NAME_local_bytes(const NAME_sizes *sizes);

/* Does the items begin <= item < end of a kernel. */
int NAME_run_items(int kernel, int64_t begin, int64_t end, const NAME_sizes *sizes, const NAME_inputs *in,
                   const NAME_outputs *out, void *workspace, void *local);

