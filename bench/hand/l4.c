// L4: T steps of reaction and diffusion on a torus, and the sum of squares of the last v
//
// u' = u - u v^2 + f (1 - u) + L(u)/5,   v' = v + u v^2 - (f + 0.06) v + L(v)/10
// The adjoint of a step has the same stencil. The gradient stores every SEGMENT-th state and computes those between again,
// for they stay in the last cache.

#include "real.h"

enum { H = SIZE_H, W = SIZE_W, T = SIZE_T, SEGMENT = 10, CELLS = H * W };
_Static_assert(W % LANES == 0 && T % SEGMENT == 0, "whole vectors and segments");

typedef struct {
    real *u, *v;
} State;

// Neighbours of one vector of a row, where the row goes around at its ends.
static ALWAYS_INLINE vec laplacian(const real *x, long i, long j) {
    const real *row = x + i * W, *up = x + (i ? i - 1 : H - 1) * W, *down = x + (i + 1 < H ? i + 1 : 0) * W;
    vec here = load(row + j), left, right;
    if (j > 0) left = load(row + j - 1);
    else {
        real own[LANES] = {row[W - 1]};
        memcpy(own + 1, row, (LANES - 1) * sizeof(real));
        left = load(own);
    }
    if (j + LANES < W) right = load(row + j + 1);
    else {
        real own[LANES];
        memcpy(own, row + j + 1, (LANES - 1) * sizeof(real));
        own[LANES - 1] = row[0];
        right = load(own);
    }
    return load(up + j) + load(down + j) + left + right - 4 * here;
}

static ALWAYS_INLINE void cells(State now, State next, real f, long i, long j) {
    vec u = load(now.u + i * W + j), v = load(now.v + i * W + j), reacted = u * v * v;
    store(next.u + i * W + j, u - reacted + f * (1 - u) + (real)0.2 * laplacian(now.u, i, j));
    store(next.v + i * W + j, v + reacted - (f + (real)0.06) * v + (real)0.1 * laplacian(now.v, i, j));
}

// For all threads of a region.
static void step(State now, State next, real f) {
    Share mine = share(H, 1);
    for (long i = mine.from; i < mine.to; i++) {
        cells(now, next, f, i, 0);
        for (long j = LANES; j < W - LANES; j += LANES) cells(now, next, f, i, j);
        if (W > LANES) cells(now, next, f, i, W - LANES);
    }
#pragma omp barrier
}

static ALWAYS_INLINE vec adjoint_cells(State now, State upstream, State to, real f, long i, long j) {
    long at = i * W + j;
    vec u = load(now.u + at), v = load(now.v + at), du = load(upstream.u + at), dv = load(upstream.v + at), gap = dv - du;
    store(to.u + at, du + v * v * gap - f * du + (real)0.2 * laplacian(upstream.u, i, j));
    store(to.v + at, dv + 2 * u * v * gap - (f + (real)0.06) * dv + (real)0.1 * laplacian(upstream.v, i, j));
    return du * (1 - u) - dv * v;
}

static void adjoint(State now, State upstream, State to, real f, real *parts) {
    Share mine = share(H, 1);
    vec sum = zero();
    for (long i = mine.from; i < mine.to; i++) {
        sum += adjoint_cells(now, upstream, to, f, i, 0);
        for (long j = LANES; j < W - LANES; j += LANES) sum += adjoint_cells(now, upstream, to, f, i, j);
        if (W > LANES) sum += adjoint_cells(now, upstream, to, f, i, W - LANES);
    }
    parts[omp_get_thread_num()] = horizontal_sum(sum);
#pragma omp barrier
}

static State state(real *room, long number) { return (State){room + 2 * number * CELLS, room + (2 * number + 1) * CELLS}; }

void value(const real *const *in, real *const *out) {
    const real *f = in[2];
    real *room = scratch(0, 4 * CELLS);
    State last = state(room, (T - 1) % 2);
#pragma omp parallel
    for (long t = 0; t < T; t++) {
        State now = t ? state(room, (t - 1) % 2) : (State){(real *)in[0], (real *)in[1]};
        step(now, state(room, t % 2), f[t]);
    }
    vec sum = zero();
    for (long at = 0; at < CELLS; at += LANES) sum += load(last.v + at) * load(last.v + at);
    out[0][0] = horizontal_sum(sum);
}

void gradient(const real *const *in, real *const *out) {
    const real *f = in[2], upstream = in[3][0];
    const long segments = T / SEGMENT;
    real *firsts = scratch(0, 2 * (segments + 1) * CELLS), *room = scratch(1, 2 * (SEGMENT + 1) * CELLS);
    real *adjoints = scratch(2, 4 * CELLS);
    static real parts[MAX_THREADS];
#pragma omp parallel
    {
#pragma omp master
        memcpy(firsts, in[0], CELLS * sizeof(real)), memcpy(firsts + CELLS, in[1], CELLS * sizeof(real));
#pragma omp barrier
        for (long t = 0; t < T; t++) {
            State now = t % SEGMENT ? state(room, t % 2) : state(firsts, t / SEGMENT);
            step(now, (t + 1) % SEGMENT ? state(room, (t + 1) % 2) : state(firsts, (t + 1) / SEGMENT), f[t]);
        }
        Share mine = share(CELLS, LANES);
        State last = state(firsts, segments), after = state(adjoints, T % 2);
        for (long at = mine.from; at < mine.to; at += LANES)
            store(after.u + at, zero()), store(after.v + at, 2 * upstream * load(last.v + at));
#pragma omp barrier
        for (long segment = segments - 1; segment >= 0; segment--) {
            long first = segment * SEGMENT;
            for (long t = 0; t < SEGMENT - 1; t++)
                step(t ? state(room, t) : state(firsts, segment), state(room, t + 1), f[first + t]);
            for (long t = SEGMENT - 1; t >= 0; t--) {
                State to = first + t ? state(adjoints, (first + t) % 2) : (State){out[0], out[1]};
                adjoint(t ? state(room, t) : state(firsts, segment), state(adjoints, (first + t + 1) % 2), to, f[first + t], parts);
#pragma omp master
                {
                    out[2][first + t] = 0;
                    for (int thread = 0; thread < omp_get_num_threads(); thread++) out[2][first + t] += parts[thread];
                }
#pragma omp barrier
            }
        }
    }
}
