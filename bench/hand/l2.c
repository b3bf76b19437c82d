// L2: y[t] = x[t] + d[t] * y[t - 1],   d[t] = exp(s[t - 1] - s[t])
//
// dx[t] = dy[t] + d[t + 1] * dx[t + 1], and with u[t] = dx[t] * d[t] * y[t - 1]: ds[t] = u[t + 1] - u[t].
// Steps of a vector are put together in registers: after y[t] = b + a * y[t - 1] and y[t + 1] = d + c * y[t] it is
// y[t + 1] = (d + c * b) + (c * a) * y[t - 1].
// Of the value, the second thread takes the last part as if nothing came before it, and what did is added by both; of the
// gradient, one thread goes up and another one down.

#include "real.h"

enum { N = SIZE_N, SECOND = N / 8 * 5 / LANES * LANES };
_Static_assert(N % LANES == 0, "whole vectors");

static ALWAYS_INLINE vec shifted(vec value, const int by, const int falling, const real outside) {
    ivec from;
    UNROLL for (int lane = 0; lane < LANES; lane++) {
        int source = falling ? lane + by : lane - by;
        from[lane] = source >= 0 && source < LANES ? source : LANES;
    }
    return __builtin_shuffle(value, splat(outside), from);
}

static ALWAYS_INLINE vec decays(const real *s, long t) {
    vec here = load(s + t), before = t ? load(s + t - 1) : shifted(here, 1, 0, here[0]);
    return vexp(before - here);
}

// One vector: what comes out at its steps, where `carried` came out before.
static ALWAYS_INLINE vec steps(vec a, vec b, vec *carried, const int falling) {
    UNROLL for (int by = 1; by < LANES; by *= 2) {
        b += a * shifted(b, by, falling, 0);
        a *= shifted(a, by, falling, 1);
    }
    vec here = b + a * *carried;
    *carried = splat(here[falling ? 0 : LANES - 1]);
    return here;
}

static void rising(const real *x, const real *s, real *y, real *d, long from, long to) {
    vec carried = zero();
    for (long t = from; t < to; t += LANES) {
        vec decay = decays(s, t);
        if (d) store(d + t, decay);
        store(y + t, steps(decay, load(x + t), &carried, 0));
    }
}

static void falling(const real *dy, const real *s, real *dx) {
    vec carried = zero();
    for (long t = N - LANES; t >= 0; t -= LANES) {
        vec here = load(s + t), after = t + LANES < N ? load(s + t + 1) : shifted(here, 1, 1, here[LANES - 1]);
        store(dx + t, steps(vexp(here - after), load(dy + t), &carried, 1));
    }
}

void value(const real *const *in, real *const *out) {
    const real *x = in[0], *s = in[1];
    real *y = out[0];
    if (omp_get_max_threads() < 2) return rising(x, s, y, 0, 0, N);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) rising(x, s, y, 0, 0, SECOND);
        else rising(x, s, y, 0, SECOND, N);
#pragma omp barrier
        Share mine = share(N - SECOND, LANES);
        real before = y[SECOND - 1], start = s[SECOND - 1];
        for (long t = SECOND + mine.from; t < SECOND + mine.to; t += LANES)
            store(y + t, load(y + t) + before * vexp(start - load(s + t)));
    }
}

void gradient(const real *const *in, real *const *out) {
    const real *x = in[0], *s = in[1], *dy = in[2];
    real *dx = out[0], *ds = out[1];
    real *y = scratch(0, N), *d = scratch(1, N);
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            rising(x, s, y, d, 0, N);
#pragma omp section
            falling(dy, s, dx);
        }
        Share mine = share(N, LANES);
        for (long t = mine.from; t < mine.to; t++) {
            real own = t ? dx[t] * d[t] * y[t - 1] : 0, next = t + 1 < N ? dx[t + 1] * d[t + 1] * y[t] : 0;
            ds[t] = next - own;
        }
    }
}
