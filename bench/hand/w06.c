// W6: inside, v = u + dt * l * e with l the 5-point Laplacian of u and e = exp(-c*u^2); on the border, v = u
//
// With h = dv * e inside and 0 on the border, and l(h) its Laplacian:
//   du = dv - 2*c*dt*u*l*h + dt*l(h),   ddt = sum h*l,   dc = -dt * sum h*l*u^2
// One pass over memory: a thread keeps the last three rows of h, and of the first two terms of du, in cache.

#include "real.h"

enum { N = SIZE_N, M = SIZE_M, PITCH = M + 2 * LANES };
_Static_assert(M % LANES == 0 && M >= 2 * LANES && N >= 3, "whole vectors");

static ALWAYS_INLINE vec laplacian(const real *at, long row) {
    return load(at - row) + load(at + row) + load(at - 1) + load(at + 1) - 4 * load(at);
}

// Without a first and last column, which are copied.
static ALWAYS_INLINE vec inside(long j, vec value) {
    if (j == 0) value[0] = 0;
    if (j == M - LANES) value[LANES - 1] = 0;
    return value;
}

void value(const real *const *in, real *const *out) {
    const real *u = in[0], dt = *in[1], c = *in[2];
    real *v = out[0];
#pragma omp parallel
    {
        Share mine = share(N, 1);
        for (long i = mine.from; i < mine.to; i++) {
            const real *row = u + i * M;
            if (i == 0 || i == N - 1) {
                memcpy(v + i * M, row, M * sizeof(real));
                continue;
            }
            for (long j = 0; j < M; j += LANES) {
                vec here = load(row + j);
                vec step = dt * laplacian(row + j, M) * vexp(-c * here * here);
                stream(v + i * M + j, here + inside(j, step));
            }
        }
        stream_end();
    }
}

typedef struct {
    double dt, dc;
} Sums;

// h and the first two terms of du, of row i.
static Sums row_terms(const real *u, const real *dv, real dt, real c, long i, real *h, real *own) {
    if (i <= 0 || i >= N - 1) {
        memset(h, 0, M * sizeof(real));
        if (i == 0 || i == N - 1) memcpy(own, dv + i * M, M * sizeof(real));
        return (Sums){0, 0};
    }
    vec sum_dt = zero(), sum_dc = zero();
    for (long j = 0; j < M; j += LANES) {
        vec here = load(u + i * M + j), upstream = load(dv + i * M + j);
        vec spread = inside(j, upstream) * vexp(-c * here * here);
        vec moved = spread * laplacian(u + i * M + j, M);
        sum_dt += moved;
        sum_dc += moved * here * here;
        store(h + j, spread);
        store(own + j, upstream - 2 * c * dt * here * moved);
    }
    return (Sums){horizontal_sum(sum_dt), -dt * horizontal_sum(sum_dc)};
}

void gradient(const real *const *in, real *const *out) {
    const real *u = in[0], dt = *in[1], c = *in[2], *dv = in[3];
    real *du = out[0];
    double ddt = 0, dc = 0;
#pragma omp parallel reduction(+ : ddt, dc)
    {
        real *rows = scratch(0, 3 * PITCH) + LANES, *own = scratch(1, 3 * M);
        Share mine = share(N, 1);
        for (long i = mine.from - 1; i <= mine.to; i++) {
            Sums sums = row_terms(u, dv, dt, c, i, rows + (i + 3) % 3 * PITCH, own + (i + 3) % 3 * M);
            if (i >= mine.from && i < mine.to) ddt += sums.dt, dc += sums.dc;
            long done = i - 1;
            if (done < mine.from) continue;
            const real *above = rows + (done + 2) % 3 * PITCH, *at = rows + done % 3 * PITCH;
            const real *below = rows + (done + 1) % 3 * PITCH, *terms = own + done % 3 * M;
            for (long j = 0; j < M; j += LANES) {
                vec flow = load(above + j) + load(below + j) + load(at + j - 1) + load(at + j + 1) - 4 * load(at + j);
                stream(du + done * M + j, load(terms + j) + dt * flow);
            }
        }
        stream_end();
    }
    *out[1] = ddt;
    *out[2] = dc;
}
