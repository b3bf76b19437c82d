// Enough of CUDA C++ to compile kernels for the processor and to run them there, thread after thread, block after block.
//
// The threads of a block are coroutines: each runs up to a barrier or its end, then the next one. A barrier that some threads
// of a block never reach is an error. Threads and blocks may run in the other order: kernels whose results depend on that
// have a race.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static

struct Place {
    unsigned x, y, z;
};
static Place threadIdx, blockIdx;

using namespace std;

static inline double __longlong_as_double(long long bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}
static inline double sinpi(double x) { return sin(3.141592653589793 * x); }
static inline double cospi(double x) { return cos(3.141592653589793 * x); }

namespace emulator {

static const size_t stack_bytes = 256 << 10;

struct Thread {
    ucontext_t context;
    unique_ptr<char[]> stack{new char[stack_bytes]};
    bool done = false;
    void *fake = nullptr;
};

static ucontext_t scheduler;
static vector<Thread> threads;
static unsigned current, at_barrier;
static void (*kernel)(void *);
static void *argument;
static void *scheduler_fake;
static const void *scheduler_stack;
static size_t scheduler_bytes;

static inline void leave(bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &threads[current].fake, scheduler_stack, scheduler_bytes);
#endif
    (void)for_good;
    swapcontext(&threads[current].context, &scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(threads[current].fake, &scheduler_stack, &scheduler_bytes);
#endif
}

static inline void start() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_bytes);
#endif
    kernel(argument);
    threads[current].done = true;
    leave(true);
}

static inline void resume(unsigned number) {
    current = number;
    threadIdx.x = number;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler_fake, threads[number].stack.get(), stack_bytes);
#endif
    swapcontext(&scheduler, &threads[number].context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}

// All blocks of a launch.
static inline void run(void (*function)(void *), void *call, unsigned blocks, unsigned count, bool reversed) {
    kernel = function;
    argument = call;
    if (threads.size() < count) threads.resize(count);
    for (unsigned number = 0; number < blocks; number++) {
        blockIdx.x = reversed ? blocks - 1 - number : number;
        for (unsigned t = 0; t < count; t++) {
            Thread &thread = threads[t];
            thread.done = false;
            getcontext(&thread.context);
            thread.context.uc_stack.ss_sp = thread.stack.get();
            thread.context.uc_stack.ss_size = stack_bytes;
            thread.context.uc_link = nullptr;
            makecontext(&thread.context, start, 0);
        }
        for (unsigned left = count; left > 0;) {
            at_barrier = 0;
            unsigned ended = 0;
            for (unsigned t = 0; t < count; t++) {
                const unsigned own = reversed ? count - 1 - t : t;
                if (threads[own].done) continue;
                resume(own);
                ended += threads[own].done;
            }
            left -= ended;
            if (ended > 0 && at_barrier > 0) {
                fprintf(stderr, "some threads of a block end while others wait at a barrier\n");
                abort();
            }
        }
    }
}

} // namespace emulator

static inline void __syncthreads() {
    emulator::at_barrier++;
    emulator::leave(false);
}
