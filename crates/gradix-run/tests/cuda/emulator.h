// Enough of CUDA C++ to compile kernels for the processor. What runs their threads is in driver.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
// Blocks run one after the other.
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))

struct Place {
    unsigned x, y, z;
};

// Which thread runs, and how it waits for the others of its block.
struct Emulated {
    Place thread, block;
    void (*wait)();
};

extern "C" {
Emulated *emulated;
}

#define threadIdx (emulated->thread)
#define blockIdx (emulated->block)

static inline void __syncthreads() { emulated->wait(); }

using namespace std;

static inline double __longlong_as_double(long long bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}
static inline double sinpi(double x) { return sin(3.141592653589793 * x); }
static inline double cospi(double x) { return cos(3.141592653589793 * x); }
