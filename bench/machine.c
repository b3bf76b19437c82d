// What the machine can do at most: fused multiply-adds in registers and reading memory, on all threads together.
// Prints one line of JSON.

#include "hand/real.h"
#include <stdio.h>

static double best_of(int repeats, void (*work)(void)) {
    double best = INFINITY;
    for (int repeat = 0; repeat < repeats; repeat++) {
        double start = omp_get_wtime();
        work();
        double seconds = omp_get_wtime() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

enum { CHAINS = 16, STEPS = 1 << 20 };
static volatile real sink;

static void multiply_add(void) {
#pragma omp parallel
    {
        vec sum[CHAINS], factor = splat((real)0.999), term = splat((real)0.001);
        UNROLL for (int chain = 0; chain < CHAINS; chain++) sum[chain] = splat((real)chain);
        for (long step = 0; step < STEPS; step++)
            UNROLL for (int chain = 0; chain < CHAINS; chain++) sum[chain] = sum[chain] * factor + term;
        real total = 0;
        UNROLL for (int chain = 0; chain < CHAINS; chain++) total += horizontal_sum(sum[chain]);
        sink = total;
    }
}

enum { COUNT = 1 << 25 };
static real *array;

static void read_memory(void) {
#pragma omp parallel
    {
        Share mine = share(COUNT, 8 * LANES);
        vec sum[8] = {0};
        for (long i = mine.from; i < mine.to; i += 8 * LANES)
            UNROLL for (int v = 0; v < 8; v++) sum[v] += load(array + i + v * LANES);
        real total = 0;
        UNROLL for (int v = 0; v < 8; v++) total += horizontal_sum(sum[v]);
        sink = total;
    }
}

int main(void) {
    array = scratch(0, COUNT);
    double flops = 2.0 * LANES * CHAINS * STEPS * omp_get_max_threads() / best_of(9, multiply_add);
    double bytes = (double)COUNT * sizeof(real) / best_of(9, read_memory);
    printf("{\"gflops\": %.1f, \"gbytes\": %.1f}\n", flops * 1e-9, bytes * 1e-9);
}
