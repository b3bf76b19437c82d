// The threads of a block are coroutines: each runs up to a barrier or its end, then the next one. A barrier that some threads
// of a block never reach is an error. Threads and blocks may run in the other order: kernels whose results depend on that
// have a race.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ucontext.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace threads {

struct Place {
    unsigned x, y, z;
};

// As emulator.h declares it.
struct Emulated {
    Place thread, block;
    void (*wait)();
};

typedef void (*Kernel)(void *call);

static const size_t stack_bytes = 256 << 10;

struct Thread {
    ucontext_t context;
    jmp_buf place;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    bool started = false, done = false;
    void *fake = nullptr;
};

static ucontext_t first;
static jmp_buf scheduler;
static std::vector<std::unique_ptr<Thread>> all;
static unsigned current, at_barrier;
static Kernel kernel;
static void *argument;

#if defined(__SANITIZE_ADDRESS__)
static void *scheduler_fake;
static const void *scheduler_stack;
static size_t scheduler_bytes;

static void start_switch(void **fake, const void *stack, size_t bytes) { __sanitizer_start_switch_fiber(fake, stack, bytes); }
static void finish_switch(void *fake, bool from_scheduler) {
    __sanitizer_finish_switch_fiber(fake, from_scheduler ? &scheduler_stack : nullptr, from_scheduler ? &scheduler_bytes : nullptr);
}
// The sanitizer takes a jump to another stack for one up its own.
static void leave() {
    Thread &own = *all[current];
    start_switch(&own.fake, scheduler_stack, scheduler_bytes);
    swapcontext(&own.context, &first);
    finish_switch(own.fake, true);
}
static void resume(Thread &thread) {
    start_switch(&scheduler_fake, thread.stack.get(), stack_bytes);
    swapcontext(&first, &thread.context);
    finish_switch(scheduler_fake, false);
}
#else
static void finish_switch(void *, bool) {}
// Jumps, where the system's way to switch would ask the kernel each time.
static void leave() {
    if (!_setjmp(all[current]->place)) _longjmp(scheduler, 1);
}
static void resume(Thread &thread) {
    if (_setjmp(scheduler)) return;
    if (thread.started) _longjmp(thread.place, 1);
    thread.started = true;
    swapcontext(&first, &thread.context);
}
#endif

static void wait() {
    at_barrier++;
    leave();
}

// What a thread does for ever: kernel after kernel.
static void run_thread() {
    finish_switch(nullptr, true);
    for (;;) {
        kernel(argument);
        all[current]->done = true;
        leave();
    }
}

static void provide(unsigned count) {
    while (all.size() < count) {
        all.emplace_back(new Thread);
        Thread &thread = *all.back();
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.get();
        thread.context.uc_stack.ss_size = stack_bytes;
        thread.context.uc_link = nullptr;
        makecontext(&thread.context, run_thread, 0);
    }
}

static void run_block(Emulated &own, unsigned count, bool reversed) {
    for (unsigned t = 0; t < count; t++) all[t]->done = false;
    for (unsigned left = count; left > 0;) {
        unsigned ended = 0;
        at_barrier = 0;
        for (unsigned t = 0; t < count; t++) {
            current = reversed ? count - 1 - t : t;
            if (all[current]->done) continue;
            own.thread.x = current;
            resume(*all[current]);
            ended += all[current]->done;
        }
        left -= ended;
        if (ended > 0 && at_barrier > 0) {
            fprintf(stderr, "some threads of a block end while others wait at a barrier\n");
            abort();
        }
    }
}

// All blocks of a launch; without barriers, a thread is a call.
static void run(Emulated &own, Kernel function, void *call, unsigned blocks, unsigned count, bool has_barriers, bool reversed) {
    kernel = function;
    argument = call;
    own.wait = wait;
    if (has_barriers) provide(count);
    for (unsigned number = 0; number < blocks; number++) {
        own.block.x = reversed ? blocks - 1 - number : number;
        if (has_barriers) {
            run_block(own, count, reversed);
            continue;
        }
        for (unsigned t = 0; t < count; t++) {
            own.thread.x = reversed ? count - 1 - t : t;
            function(call);
        }
    }
}

} // namespace threads
