
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <initializer_list>

/* $conditions */
struct NAME_sizes {
$sizes
};

/* Arrays are dense and row-major, in the memory of the device. An array without elements may be null. */
struct NAME_inputs {
$inputs
};

/* Every element is written. Outputs overlap neither each other nor inputs nor the workspace. */
struct NAME_outputs {
$outputs
};

/* What functions return. */
enum {
    NAME_ok = 0,
    NAME_bad_sizes = 1,    /* a size is below its bound, or a condition on sizes does not hold */
    NAME_null_pointer = 2, /* something that is needed is null */
    NAME_too_large = 3,    /* a size is past $limit, or an array is past all memory; with GX_NARROW, past 32 bits */
    NAME_failed = 4        /* CUDA refuses a kernel: cudaGetLastError() says why */
};

/* How many bytes of the device's memory a run needs besides; it may be 0. SIZE_MAX: there is no run at these sizes. */
extern "C" size_t NAME_workspace_bytes(const NAME_sizes *sizes);

/* Starts everything on a stream, and waits for nothing. The workspace starts at a multiple of 64 and may hold anything; runs that
 * share one follow each other on a stream. */
extern "C" int NAME_run(const NAME_sizes *sizes, const NAME_inputs *in, const NAME_outputs *out, void *workspace, cudaStream_t stream);
