// The loops of docs/benchmarks-loops.md by hand, on one thread, with the exponential of bench/hand: `hand NAME` prints the shortest of many runs in seconds.
//
// Compile with -O3 -march=native -fopenmp -ffp-contract=fast -fno-math-errno -fno-trapping-math, and -DREAL_F32 for floats.

#define _GNU_SOURCE
#include "../hand/real.h"
#include <stdio.h>
#include <time.h>

#ifdef REAL_F32
#define EXP expf
#define LOG logf
#define SQRT sqrtf
#else
#define EXP exp
#define LOG log
#define SQRT sqrt
#endif

// Random numbers in -1..1, or near 1 with `positive`.
static real *filled(long count, int positive) {
    real *array = aligned_alloc(64, (count * sizeof(real) + 63) / 64 * 64);
    unsigned state = 1;
    for (long i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        array[i] = positive ? 1 + (state >> 8) / 16777216.0f : (state >> 8) / 8388608.0f - 1;
    }
    return array;
}

static volatile real result;

// s[t] = s[t - 1] + x[t]
static void prefix_sum(void) {
    enum { N = 1000000 };
    static real *restrict x, *restrict s;
    if (!x) x = filled(N, 0), s = filled(N, 0);
    real sum = 0;
    for (long t = 0; t < N; t++) s[t] = sum += x[t];
}

// y[t] = x[t] + exp(s[t - 1] - s[t]) * y[t - 1]
static void causal_kernel(void) {
    enum { N = 1000000, BLOCK = 512 };
    static real *restrict x, *restrict s, *restrict y;
    if (!x) x = filled(N, 0), s = filled(N + LANES, 0), y = filled(N, 0);
    real before = y[0] = x[0], decay[BLOCK];
    for (long first = 1; first < N; first += BLOCK) {
        long count = first + BLOCK < N ? BLOCK : N - first;
        for (long i = 0; i < count; i += LANES)
            store(decay + i, vexp(load(s + first + i - 1) - load(s + first + i)));
        for (long i = 0; i < count; i++) y[first + i] = before = x[first + i] + decay[i] * before;
    }
}

// The state-space layer of examples/selective_scan.gx; the states are not stored.
static void selective_scan(void) {
    enum { N = 4, T = 512, C = 64, S = 16 };
    static real *restrict x, *restrict d, *restrict a, *restrict b, *restrict c, *restrict y;
    if (!x) {
        x = filled(N * T * C, 0), d = filled(N * T * C, 0), a = filled(C * S, 0), b = filled(N * T * S, 0);
        c = filled(N * T * S, 0), y = filled(N * T * C, 0);
    }
    for (long n = 0; n < N; n++) {
        real h[C][S];
        memset(h, 0, sizeof h);
        for (long t = 0; t < T; t++)
            for (long k = 0; k < C; k++) {
                long at = (n * T + t) * C + k, row = (n * T + t) * S;
                vec sum = {0};
                for (long s = 0; s < S; s += LANES) {
                    vec state = vexp(d[at] * load(a + k * S + s)) * load(h[k] + s) + d[at] * x[at] * load(b + row + s);
                    store(h[k] + s, state);
                    sum += load(c + row + s) * state;
                }
                y[at] = horizontal_sum(sum);
            }
    }
}

// One step of examples/gray_scott_steps.gx
enum { H = 256, W = 256 };
static void step(const real *restrict u, const real *restrict v, real *restrict next_u, real *restrict next_v, real f) {
    for (long i = 0; i < H; i++) {
        long up = (i + H - 1) % H * W, row = i * W, down = (i + 1) % H * W;
#define CELL(j, left, right)                                                                                         \
    do {                                                                                                             \
        real p = u[row + (j)], q = v[row + (j)], pqq = p * q * q;                                                     \
        real lu = u[up + (j)] + u[down + (j)] + u[row + (left)] + u[row + (right)] - 4 * p;                           \
        real lv = v[up + (j)] + v[down + (j)] + v[row + (left)] + v[row + (right)] - 4 * q;                           \
        next_u[row + (j)] = p - pqq + f * (1 - p) + (real)0.2 * lu;                                                   \
        next_v[row + (j)] = q + pqq - (f + (real)0.06) * q + (real)0.1 * lv;                                          \
    } while (0)
        CELL(0, W - 1, 1);
        for (long j = 1; j < W - 1; j++) CELL(j, j - 1, j + 1);
        CELL(W - 1, W - 2, 0);
    }
}

static void reaction_diffusion(void) {
    enum { T = 100 };
    static real *u0, *v0, *f, *field[4];
    if (!u0) {
        u0 = filled(H * W, 1), v0 = filled(H * W, 1), f = filled(T, 0);
        for (long i = 0; i < H * W; i++) u0[i] *= (real)0.4, v0[i] *= (real)0.1;
        for (long t = 0; t < T; t++) f[t] = (real)0.04;
        for (int i = 0; i < 4; i++) field[i] = filled(H * W, 0);
    }
    const real *u = u0, *v = v0;
    for (long t = 0; t < T; t++) {
        real *next_u = field[t % 2], *next_v = field[2 + t % 2];
        step(u, v, next_u, next_v, f[t]);
        u = next_u, v = next_v;
    }
    vec sum = {0};
    for (long i = 0; i < H * W; i += LANES) sum += load(v + i) * load(v + i);
    result = horizontal_sum(sum);
}

// examples/crf.gx, with terms of one state before in vectors along the states after
static void crf(void) {
    enum { T = 256, S = 64 };
    static real *restrict e, *restrict w;
    if (!e) e = filled(T * S, 0), w = filled(S * S, 0);
    real a[S], top[S], sum[S];
    memcpy(a, e, sizeof a);
    for (long t = 1; t < T; t++) {
        for (long s = 0; s < S; s++) top[s] = -INFINITY, sum[s] = 0;
        for (long r = 0; r < S; r++)
            for (long s = 0; s < S; s++) top[s] = top[s] > a[r] + w[r * S + s] ? top[s] : a[r] + w[r * S + s];
        for (long r = 0; r < S; r++)
            for (long s = 0; s < S; s += LANES)
                store(sum + s, load(sum + s) + vexp(a[r] + load(w + r * S + s) - load(top + s)));
        for (long s = 0; s < S; s++) a[s] = e[t * S + s] + top[s] + LOG(sum[s]);
    }
    real largest = a[0], total = 0;
    for (long s = 1; s < S; s++) largest = largest > a[s] ? largest : a[s];
    for (long s = 0; s < S; s++) total += EXP(a[s] - largest);
    result = largest + LOG(total);
}

// examples/soft_dtw.gx, row by row
static void soft_dtw(void) {
    enum { N = 512 };
    static real *restrict x, *restrict y;
    if (!x) x = filled(N, 0), y = filled(N, 0);
    static real rows[2][N + 1];
    for (long j = 0; j <= N; j++) rows[0][j] = j ? 20 : 0;
    for (long i = 1; i <= N; i++) {
        const real *before = rows[(i - 1) % 2];
        real *row = rows[i % 2];
        row[0] = 20;
        for (long j = 1; j <= N; j++) {
            real gap = x[i - 1] - y[j - 1];
            row[j] = gap * gap - LOG(EXP(-before[j]) + EXP(-row[j - 1]) + EXP(-before[j - 1]));
        }
    }
    result = rows[N % 2][N];
}

// L of examples/cholesky.gx, row by row, and the product before it
static void cholesky(void) {
    enum { N = 256 };
    static real *restrict b, *restrict m, *restrict l;
    if (!b) b = filled(N * N, 0), m = filled(N * N, 0), l = filled(N * N, 0);
    for (long i = 0; i < N; i++)
        for (long j = 0; j <= i; j++) {
            real sum[16] = {0}, total = i == j;
            for (long k = 0; k < N; k += 16)
                for (long q = 0; q < 16; q++) sum[q] += b[i * N + k + q] * b[j * N + k + q];
            for (long q = 0; q < 16; q++) total += sum[q];
            m[i * N + j] = total;
        }
    for (long i = 0; i < N; i++) {
        for (long j = 0; j <= i; j++) {
            real sum[16] = {0}, total = m[i * N + j];
            long k = 0;
            for (; k + 16 <= j; k += 16)
                for (long q = 0; q < 16; q++) sum[q] += l[i * N + k + q] * l[j * N + k + q];
            for (; k < j; k++) total -= l[i * N + k] * l[j * N + k];
            for (long q = 0; q < 16; q++) total -= sum[q];
            l[i * N + j] = i == j ? SQRT(total) : total / l[j * N + j];
        }
        for (long j = i + 1; j < N; j++) l[i * N + j] = 0;
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*run)(void); } loops[] = {
        {"prefix_sum", prefix_sum}, {"causal_kernel", causal_kernel}, {"selective_scan", selective_scan},
        {"reaction_diffusion", reaction_diffusion}, {"crf", crf}, {"soft_dtw", soft_dtw}, {"cholesky", cholesky},
    };
    for (unsigned n = 0; count == 2 && n < sizeof loops / sizeof *loops; n++) {
        if (strcmp(arguments[1], loops[n].name)) continue;
        double shortest = INFINITY, start = now();
        for (long round = 0; round < 5 || now() - start < 1; round++) {
            double from = now();
            loops[n].run();
            double took = now() - from;
            if (took < shortest) shortest = took;
        }
        printf("%.9f\n", shortest);
        return 0;
    }
    return 2;
}
