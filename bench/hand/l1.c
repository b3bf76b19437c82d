// L1: s[t] = s[t - 1] + x[t], and dx[t] = dx[t + 1] + ds[t]
//
// Sums of vectors in registers, one vector after the other. Each thread first adds up its share, to know what comes before
// the shares of others.

#include "real.h"

enum { N = SIZE_N };
_Static_assert(N % LANES == 0, "whole vectors");

// Each lane with the one `by` before it (after it, if falling), and 0 at the end.
static ALWAYS_INLINE vec shifted(vec value, const int by, const int falling) {
    ivec from;
    UNROLL for (int lane = 0; lane < LANES; lane++) {
        int source = falling ? lane + by : lane - by;
        from[lane] = source >= 0 && source < LANES ? source : LANES;
    }
    return __builtin_shuffle(value, zero(), from);
}

static ALWAYS_INLINE void scan(const real *x, real *s, const int falling) {
    static real sums[MAX_THREADS];
#pragma omp parallel
    {
        Share mine = share(N, LANES);
        int thread = omp_get_thread_num();
        vec sum[8] = {zero()}, total = zero();
        long t = mine.from;
        for (; t + 8 * LANES <= mine.to; t += 8 * LANES) UNROLL for (int v = 0; v < 8; v++) sum[v] += load(x + t + v * LANES);
        for (; t < mine.to; t += LANES) sum[0] += load(x + t);
        UNROLL for (int v = 0; v < 8; v++) total += sum[v];
        sums[thread] = horizontal_sum(total);
#pragma omp barrier
        real before = 0;
        for (int other = 0; other < omp_get_num_threads(); other++)
            if (falling ? other > thread : other < thread) before += sums[other];
        vec carried = splat(before);
        for (long done = 0; done < mine.to - mine.from; done += LANES) {
            long at = falling ? mine.to - LANES - done : mine.from + done;
            vec here = load(x + at);
            UNROLL for (int by = 1; by < LANES; by *= 2) here += shifted(here, by, falling);
            vec all = splat(here[falling ? 0 : LANES - 1]);
            store(s + at, here + carried);
            carried += all;
        }
    }
}

void value(const real *const *in, real *const *out) { scan(in[0], out[0], 0); }

void gradient(const real *const *in, real *const *out) { scan(in[1], out[0], 1); }
