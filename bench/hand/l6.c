// L6: a[t, s] = e[t, s] + logsumexp[r] (a[t - 1, r] + w[r, s]),   z = logsumexp[s] a[T - 1, s]
//
// Vectors along s; each thread has some states. The gradient stores what each term is of its sum,
// p = exp(a[t - 1, r] + w[r, s] - (a[t, s] - e[t, s])), computed again: da[t - 1, r] = sum[s] p * da[t, s].

#include "real.h"

enum { T = SIZE_T, S = SIZE_S, R = 8 };
_Static_assert(S % LANES == 0 && S % R == 0, "whole vectors");

static real end_of(const real *a) {
    vec top = load(a), sum = zero();
    for (long s = LANES; s < S; s += LANES) top = larger(top, load(a + s));
    real largest = horizontal_max(top);
    for (long s = 0; s < S; s += LANES) sum += vexp(load(a + s) - largest);
    return largest + horizontal_max(vlog(splat(horizontal_sum(sum))));
}

// All steps, for the threads of a region; a has T rows, or 2 that take turns.
static void forward(const real *e, const real *w, real *a, long rows) {
    Share mine = share(S, LANES);
    for (long t = 0; t < T; t++) {
        const real *before = a + (t + rows - 1) % rows * S;
        for (long s = mine.from; s < mine.to; s += LANES) {
            vec own = load(e + t * S + s);
            if (t) {
                vec top = splat(-INFINITY), sum = zero();
                for (long r = 0; r < S; r++) top = larger(top, before[r] + load(w + r * S + s));
                for (long r = 0; r < S; r += R) {
                    vec term[R];
                    UNROLL for (int q = 0; q < R; q++) term[q] = before[r + q] + load(w + (r + q) * S + s) - top;
                    vexp_each(R, term);
                    UNROLL for (int q = 0; q < R; q++) sum += term[q];
                }
                own += top + vlog(sum);
            }
            store(a + t % rows * S + s, own);
        }
#pragma omp barrier
    }
}

void value(const real *const *in, real *const *out) {
    static real a[2 * S] __attribute__((aligned(64)));
#pragma omp parallel
    forward(in[0], in[1], a, 2);
    out[0][0] = end_of(a + (T - 1) % 2 * S);
}

void gradient(const real *const *in, real *const *out) {
    const real *e = in[0], *w = in[1], upstream = in[2][0];
    real *da = out[0], *dw = out[1], *a = scratch(0, T * S);
#pragma omp parallel
    {
        forward(e, w, a, T);
        Share mine = share(S, R);
        real z = end_of(a + (T - 1) * S);
        for (long r = mine.from; r < mine.to; r += LANES < R ? LANES : R)
            for (int q = 0; q < (LANES < R ? LANES : R); q++) da[(T - 1) * S + r + q] = upstream * exp(a[(T - 1) * S + r + q] - z);
        memset(dw + mine.from * S, 0, (mine.to - mine.from) * S * sizeof(real));
#pragma omp barrier
        for (long t = T - 1; t > 0; t--) {
            const real *before = a + (t - 1) * S, *now = a + t * S, *dnow = da + t * S;
            for (long r = mine.from; r < mine.to; r += R) {
                vec sum[R] = {zero()};
                for (long s = 0; s < S; s += LANES) {
                    vec shift = load(now + s) - load(e + t * S + s), own = load(dnow + s), term[R];
                    UNROLL for (int q = 0; q < R; q++) term[q] = before[r + q] + load(w + (r + q) * S + s) - shift;
                    vexp_each(R, term);
                    UNROLL for (int q = 0; q < R; q++) {
                        real *place = dw + (r + q) * S + s;
                        term[q] *= own;
                        sum[q] += term[q];
                        store(place, load(place) + term[q]);
                    }
                }
                UNROLL for (int q = 0; q < R; q++) da[(t - 1) * S + r + q] = horizontal_sum(sum[q]);
            }
#pragma omp barrier
        }
    }
}
