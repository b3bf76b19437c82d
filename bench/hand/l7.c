// L7: r[i, j] = (x[i - 1] - y[j - 1])^2 - log(exp(-r[i - 1, j]) + exp(-r[i, j - 1]) + exp(-r[i - 1, j - 1])), 20 at the borders
//
// Along diagonals i + j, in vectors over i, on one thread: a diagonal takes less time than it takes threads to meet. Each
// element has exp(-r) once, for the three that read it. The gradient keeps exp(-r) and the sums of all diagonals:
// dr[i, j] = e[i, j] * (g[i + 1, j] + g[i, j + 1] + g[i + 1, j + 1]) with g = dr / sum.

#include "real.h"

enum { N = SIZE_N, M = SIZE_M, PAD = LANES, ROW = N + 1 + 2 * PAD, DIAGONALS = N + M + 1 };

// Where row i of diagonal t is; there is room at both ends of a diagonal.
static ALWAYS_INLINE long place(long t, long i) { return t * ROW + PAD + i; }
static ALWAYS_INLINE long first(long t) { return t > M + 1 ? t - M : 1; }
static ALWAYS_INLINE long last(long t) { return t - 1 < N ? t - 1 : N; }

// exp(-r) and the sums of diagonals, `rows` of them kept; y is turned around.
static real forward(const real *x, const real *y, real *e, real *sums, long rows) {
    static real turned[M + 3 * LANES];
    for (long j = 0; j < M; j++) turned[LANES + M - 1 - j] = y[j];
    vec end = zero();
    real border = exp(-20.0);
    for (long t = 0; t < DIAGONALS; t++) {
        real *own = e + t % rows * ROW + PAD;
        const real *before = e + (t + rows - 1) % rows * ROW + PAD, *second = e + (t + rows - 2) % rows * ROW + PAD;
        for (long i = first(t); i <= last(t); i += LANES) {
            // y[t - i - 1] is turned[LANES + M - t + i].
            vec gap = load(x + i - 1) - load(turned + LANES + M - t + i);
            vec sum = load(before + i - 1) + load(before + i) + load(second + i - 1);
            end = gap * gap - vlog(sum);
            store(own + i, vexp(-end));
            if (sums) store(sums + t * ROW + PAD + i, sum);
        }
        if (t <= M) own[0] = t ? border : 1;
        if (t <= N && t) own[t] = border;
    }
    return end[0];
}

void value(const real *const *in, real *const *out) { out[0][0] = forward(in[0], in[1], scratch(0, 3 * ROW + LANES), 0, 3); }

void gradient(const real *const *in, real *const *out) {
    const real *x = in[0], *y = in[1];
    real *dx = out[0], *dy = out[1], *e = scratch(0, (DIAGONALS + 1) * ROW), *sums = scratch(1, (DIAGONALS + 1) * ROW);
    real *g = scratch(2, 3 * ROW + LANES), *turned = scratch(3, M + 4 * LANES), *dturned = scratch(4, M + 4 * LANES);
    forward(x, y, e, sums, DIAGONALS);
    for (long j = 0; j < M; j++) turned[LANES + M - 1 - j] = y[j];
    memset(g, 0, 3 * ROW * sizeof(real));
    memset(dx, 0, N * sizeof(real));
    memset(dturned, 0, (M + 3 * LANES) * sizeof(real));
    for (long t = DIAGONALS - 1; t > 1; t--) {
        real *own = g + t % 3 * ROW + PAD;
        const real *after = g + (t + 1) % 3 * ROW + PAD, *second = g + (t + 2) % 3 * ROW + PAD;
        long from = first(t), to = last(t);
        for (long i = from; i <= to; i += LANES) {
            vec arrived = load(e + place(t, i)) * (load(after + i + 1) + load(after + i) + load(second + i + 1));
            if (t == DIAGONALS - 1) arrived = splat(in[2][0]);
            ivec lane = {0};
            UNROLL for (int l = 0; l < LANES; l++) lane[l] = l;
            ivec inside = lane <= (bits_t)(to - i);
            arrived = where(inside, arrived, zero());
            store(own + i, where(inside, arrived / load(sums + place(t, i)), zero()));
            vec gap = load(x + i - 1) - load(turned + LANES + M - t + i), both = 2 * gap * arrived;
            if (i + LANES <= N + 1) store(dx + i - 1, load(dx + i - 1) + both);
            else for (long l = 0; i + l <= to; l++) dx[i + l - 1] += both[l];
            real *across = dturned + LANES + M - t + i;
            store(across, load(across) - both);
        }
        own[from - 1] = 0;
        for (long l = 1; l <= LANES; l++) own[to + l] = 0;
    }
    for (long j = 0; j < M; j++) dy[j] = dturned[LANES + M - 1 - j];
}
