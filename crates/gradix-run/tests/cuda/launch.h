// Launches on the processor, of the kernels in the file that is included before.
#include "threads.h"

static threads::Emulated own;
static const void *started;

static void call_started(void *call) { ((void (*)(const gx_call))started)(*(const gx_call *)call); }

cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    if (stream != (cudaStream_t)7 || shared != 0 || block.x % 32 != 0 || block.x > 1024) return 1;
    emulated = (Emulated *)&own;
    started = kernel;
    threads::run(own, call_started, arguments[0], blocks.x, block.x, true, false);
    return cudaSuccess;
}
