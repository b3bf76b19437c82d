// L3: h[n, t, k, s] = exp(d[n, t, k] * a[k, s]) * h[n, t - 1, k, s] + d[n, t, k] * x[n, t, k] * b[n, t, s]
//     y[n, t, k] = sum[s] c[n, t, s] * h[n, t, k, s]
//
// One sequence and one channel at a time, states in vectors, four channels beside each other. The gradient keeps the states and
// the decays of its channels only, which stay in the second cache; sequences are divided among the threads.

#include "real.h"

enum { N = SIZE_N, T = SIZE_T, C = SIZE_C, S = SIZE_S, V = S / LANES, K = 4 };
_Static_assert(S % LANES == 0 && C % K == 0, "whole vectors");

static ALWAYS_INLINE void forward(const real *const *in, long n, long k, real *y, real *kept, real *decays) {
    const real *x = in[0], *d = in[1], *a = in[2], *b = in[3], *c = in[4];
    vec h[K][V], rates[K][V];
    UNROLL for (int q = 0; q < K; q++)
        UNROLL for (int v = 0; v < V; v++) h[q][v] = zero(), rates[q][v] = load(a + (k + q) * S + v * LANES);
    for (long t = 0; t < T; t++) {
        const real *bt = b + (n * T + t) * S, *ct = c + (n * T + t) * S;
        vec e[K * V];
        UNROLL for (int q = 0; q < K; q++)
            UNROLL for (int v = 0; v < V; v++) e[q * V + v] = d[(n * T + t) * C + k + q] * rates[q][v];
        vexp_each(K * V, e);
        UNROLL for (int q = 0; q < K; q++) {
            long at = (n * T + t) * C + k + q;
            real dx = d[at] * x[at];
            vec sum = zero();
            UNROLL for (int v = 0; v < V; v++) {
                h[q][v] = e[q * V + v] * h[q][v] + dx * load(bt + v * LANES);
                sum += load(ct + v * LANES) * h[q][v];
                if (kept) {
                    store(kept + (t * K + q) * S + v * LANES, h[q][v]);
                    store(decays + (t * K + q) * S + v * LANES, e[q * V + v]);
                }
            }
            if (y) y[at] = horizontal_sum(sum);
        }
    }
}

void value(const real *const *in, real *const *out) {
#pragma omp parallel for collapse(2) schedule(static)
    for (long n = 0; n < N; n++)
        for (long k = 0; k < C; k += K) forward(in, n, k, out[0], 0, 0);
}

static ALWAYS_INLINE void backward(const real *const *in, real *const *out, long n, long k, const real *kept, const real *decays,
                                   real *da) {
    const real *x = in[0], *d = in[1], *a = in[2], *b = in[3], *c = in[4], *dy = in[5];
    real *dx = out[0], *dd = out[1], *db = out[3], *dc = out[4];
    vec g[K][V], da_sum[K][V], rates[K][V];
    UNROLL for (int q = 0; q < K; q++)
        UNROLL for (int v = 0; v < V; v++)
            g[q][v] = da_sum[q][v] = zero(), rates[q][v] = load(a + (k + q) * S + v * LANES);
    for (long t = T - 1; t >= 0; t--) {
        long row = (n * T + t) * S;
        vec db_sum[V], dc_sum[V];
        UNROLL for (int v = 0; v < V; v++)
            db_sum[v] = k ? load(db + row + v * LANES) : zero(), dc_sum[v] = k ? load(dc + row + v * LANES) : zero();
        UNROLL for (int q = 0; q < K; q++) {
            long at = (n * T + t) * C + k + q;
            vec through = zero(), decayed = zero();
            UNROLL for (int v = 0; v < V; v++) {
                long place = (t * K + q) * S + v * LANES;
                vec e = load(decays + place), before = t ? load(kept + place - K * S) : zero();
                g[q][v] += dy[at] * load(c + row + v * LANES);
                dc_sum[v] += dy[at] * load(kept + place);
                through += g[q][v] * load(b + row + v * LANES);
                db_sum[v] += d[at] * x[at] * g[q][v];
                g[q][v] *= e;
                vec of_exponent = g[q][v] * before;
                decayed += of_exponent * rates[q][v];
                da_sum[q][v] += d[at] * of_exponent;
            }
            real sum = horizontal_sum(through);
            dx[at] = d[at] * sum;
            dd[at] = x[at] * sum + horizontal_sum(decayed);
        }
        UNROLL for (int v = 0; v < V; v++) store(db + row + v * LANES, db_sum[v]), store(dc + row + v * LANES, dc_sum[v]);
    }
    UNROLL for (int q = 0; q < K; q++)
        UNROLL for (int v = 0; v < V; v++) {
            real *place = da + (k + q) * S + v * LANES;
            store(place, load(place) + da_sum[q][v]);
        }
}

void gradient(const real *const *in, real *const *out) {
    static real *parts[MAX_THREADS];
#pragma omp parallel
    {
        real *kept = scratch(0, T * K * S), *decays = scratch(1, T * K * S);
        real *da = parts[omp_get_thread_num()] = scratch(2, C * S);
        memset(da, 0, C * S * sizeof(real));
#pragma omp for schedule(static)
        for (long n = 0; n < N; n++)
            for (long k = 0; k < C; k += K) {
                forward(in, n, k, 0, kept, decays);
                backward(in, out, n, k, kept, decays, da);
            }
        sum_over_threads(C * S, parts, out[2]);
    }
}
