// W8: y[i] = sum[k in 0..=i] e[i, k] * x[k],   e[i, k] = exp(-(t[i] - t[k]))
//
// As defined: every term has its own exp (the sum is not turned into a recurrence). The derivatives need
// s[k] = sum[i >= k] e[i, k] * dy[i] and y, both from one pass over the terms:
//   dx[k] = s[k],   dt[i] = x[i] * s[i] - dy[i] * y[i]

#include "real.h"

enum { N = SIZE_N, ROWS = 4 };
_Static_assert(N % LANES == 0 && N % ROWS == 0, "whole tiles");

// e for ROWS rows from i and the vector from k, without the terms above the diagonal if there may be any.
static ALWAYS_INLINE void weights(const real *t, long i, long k, const int diagonal, vec *e) {
    vec here = load(t + k);
    UNROLL for (int r = 0; r < ROWS; r++) e[r] = here - t[i + r];
    vexp_each(ROWS, e);
    if (!diagonal) return;
    ivec lane = {0};
    UNROLL for (int l = 0; l < LANES; l++) lane[l] = k + l;
    UNROLL for (int r = 0; r < ROWS; r++) e[r] = (vec)((lane <= (bits_t)(i + r)) & (ivec)e[r]);
}

// The blocks of ROWS rows go to the threads in turn, so that all have equally many terms.
#define FOR_MY_BLOCKS(first)                                                                                           \
    for (long first = omp_get_thread_num() * ROWS; first < N; first += omp_get_num_threads() * ROWS)

static ALWAYS_INLINE void value_terms(const real *t, const real *x, long i, long k, const int diagonal, vec *y) {
    vec here = load(x + k), e[ROWS];
    weights(t, i, k, diagonal, e);
    UNROLL for (int r = 0; r < ROWS; r++) y[r] += e[r] * here;
}

void value(const real *const *in, real *const *out) {
    const real *t = in[0], *x = in[1];
#pragma omp parallel
    FOR_MY_BLOCKS(i) {
        vec y[ROWS] = {0};
        long k = 0;
        for (; k + LANES <= i; k += LANES) value_terms(t, x, i, k, 0, y);
        for (; k < i + ROWS; k += LANES) value_terms(t, x, i, k, 1, y);
        UNROLL for (int r = 0; r < ROWS; r++) out[0][i + r] = horizontal_sum(y[r]);
    }
}

static ALWAYS_INLINE void gradient_terms(const real *t, const real *x, const real *dy, long i, long k,
                                         const int diagonal, vec *y, real *s) {
    vec here = load(x + k), sum = load(s + k), e[ROWS];
    weights(t, i, k, diagonal, e);
    UNROLL for (int r = 0; r < ROWS; r++) {
        y[r] += e[r] * here;
        sum += e[r] * dy[i + r];
    }
    store(s + k, sum);
}

void gradient(const real *const *in, real *const *out) {
    const real *t = in[0], *x = in[1], *dy = in[2];
    real *dt = out[0], *dx = out[1];
    static real *parts[MAX_THREADS];
#pragma omp parallel
    {
        real *s = parts[omp_get_thread_num()] = scratch(0, N);
        memset(s, 0, N * sizeof(real));
        FOR_MY_BLOCKS(i) {
            vec y[ROWS] = {0};
            long k = 0;
            for (; k + LANES <= i; k += LANES) gradient_terms(t, x, dy, i, k, 0, y, s);
            for (; k < i + ROWS; k += LANES) gradient_terms(t, x, dy, i, k, 1, y, s);
            UNROLL for (int r = 0; r < ROWS; r++) dt[i + r] = -dy[i + r] * horizontal_sum(y[r]);
        }
#pragma omp barrier
        sum_over_threads(N, parts, dx);
        Share mine = share(N, LANES);
        for (long i = mine.from; i < mine.to; i++) dt[i] += x[i] * dx[i];
    }
}
