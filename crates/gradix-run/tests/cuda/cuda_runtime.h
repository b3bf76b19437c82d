// What host code needs of the header of this name; launch.h has what it does.
#pragma once

#include <cstddef>

typedef void *cudaStream_t;
typedef int cudaError_t;
static const cudaError_t cudaSuccess = 0;

struct dim3 {
    unsigned x, y, z;
    explicit dim3(unsigned count) : x(count), y(1), z(1) {}
};

cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared, cudaStream_t stream);
