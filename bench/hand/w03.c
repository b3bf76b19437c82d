// W3: y[n, o, t] = sum[c, k] w[o, c, k] * x[n, c, 2*t + 3*k]
//
// The even and the odd elements of x are separated first: x[2*t + 3*k] is element t + 3*k/2 of phase k % 2, so that
// all loads along t are contiguous. In dx, phase h is sum[o, k % 2 == h] w[o, c, k] * dy[n, o, m - 3*k/2], with dy
// padded by zeros; dw[o, c, k] sums over n and t in vectors, which are reduced at the very end.

#include "real.h"

enum {
    N = SIZE_N, O = SIZE_O, C = SIZE_C, K = SIZE_K, T = SIZE_T,
    LENGTH = 2 * (T - 1) + 3 * (K - 1) + 1,
    PAD = LANES,                     // zeros before each row of padded dy, at least 3*(K-1)/2
    PITCH = T + 4 * LANES,           // of a phase of x, and of a padded row of dy
    ROWS = 8,                        // channels in a tile of y or dx, with 2 vectors
    FILTERS = 4                      // of dw in a tile, with all k
};
_Static_assert(T % (2 * LANES) == 0 && O % ROWS == 0 && C % ROWS == 0 && 3 * (K - 1) / 2 < PAD, "whole tiles");

#define PHASE(k) ((k) % 2)
#define SHIFT(k) (3 * (k) / 2)

static real phases[N][C][2][PITCH] __attribute__((aligned(64)));
static real padded[N][O][PITCH] __attribute__((aligned(64)));
static real by_output[O / ROWS][C][K][ROWS], by_input[C / ROWS][O][K][ROWS];
static vec dw_sums[O][C][K];

static void split_phases(const real *x) {
    Share mine = share(N * C, 1);
    for (long row = mine.from; row < mine.to; row++)
        for (long m = 0; m < (LENGTH + 1) / 2; m++) {
            (&phases[0][0][0][0])[2 * row * PITCH + m] = x[row * LENGTH + 2 * m];
            if (2 * m + 1 < LENGTH) (&phases[0][0][0][0])[(2 * row + 1) * PITCH + m] = x[row * LENGTH + 2 * m + 1];
        }
}

void value(const real *const *in, real *const *out) {
    const real *w = in[0], *x = in[1];
    for (long o = 0; o < O; o++)
        for (long c = 0; c < C; c++)
            for (long k = 0; k < K; k++) by_output[o / ROWS][c][k][o % ROWS] = w[(o * C + c) * K + k];
#pragma omp parallel
    {
        split_phases(x);
#pragma omp barrier
        Share mine = share(N * O, ROWS);
        for (long row = mine.from; row < mine.to; row += ROWS)
            for (long t = 0; t < T; t += 2 * LANES) {
                vec sum[ROWS][2] = {0};
                for (long c = 0; c < C; c++)
                    UNROLL for (int k = 0; k < K; k++) {
                        const real *at = &phases[row / O][c][PHASE(k)][t + SHIFT(k)];
                        vec left = load(at), right = load(at + LANES);
                        UNROLL for (int r = 0; r < ROWS; r++) {
                            sum[r][0] += by_output[row % O / ROWS][c][k][r] * left;
                            sum[r][1] += by_output[row % O / ROWS][c][k][r] * right;
                        }
                    }
                UNROLL for (int r = 0; r < ROWS; r++) {
                    store(out[0] + (row + r) * T + t, sum[r][0]);
                    store(out[0] + (row + r) * T + t + LANES, sum[r][1]);
                }
            }
    }
}

// Two vectors from m of one phase of dx, for ROWS channels from c.
static ALWAYS_INLINE void dx_tile(const int phase, long n, long c, long m, real target[ROWS][2][PITCH]) {
    vec sum[ROWS][2] = {0};
    for (long o = 0; o < O; o++)
        UNROLL for (int k = phase; k < K; k += 2) {
            const real *at = &padded[n][o][PAD + m - SHIFT(k)];
            vec left = load(at), right = load(at + LANES);
            UNROLL for (int r = 0; r < ROWS; r++) {
                sum[r][0] += by_input[c / ROWS][o][k][r] * left;
                sum[r][1] += by_input[c / ROWS][o][k][r] * right;
            }
        }
    UNROLL for (int r = 0; r < ROWS; r++) {
        store(&target[r][phase][m], sum[r][0]);
        store(&target[r][phase][m + LANES], sum[r][1]);
    }
}

static void find_dx(real *dx) {
    static _Thread_local real target[ROWS][2][PITCH];
    Share mine = share(N * C, ROWS);
    for (long row = mine.from; row < mine.to; row += ROWS) {
        for (long m = 0; m < (LENGTH + 1) / 2; m += 2 * LANES) {
            dx_tile(0, row / C, row % C, m, target);
            dx_tile(1, row / C, row % C, m, target);
        }
        for (long r = 0; r < ROWS; r++) {
            for (long m = 0; m < LENGTH / 2; m++) {
                dx[(row + r) * LENGTH + 2 * m] = target[r][0][m];
                dx[(row + r) * LENGTH + 2 * m + 1] = target[r][1][m];
            }
            if (LENGTH % 2) dx[(row + r + 1) * LENGTH - 1] = target[r][0][LENGTH / 2];
        }
    }
}

static void find_dw(real *dw) {
    Share mine = share(C, 1);
    for (long n = 0; n < N; n++)
        for (long o = 0; o < O; o += FILTERS)
            for (long c = mine.from; c < mine.to; c++) {
                vec sum[FILTERS][K];
                UNROLL for (int f = 0; f < FILTERS; f++)
                    UNROLL for (int k = 0; k < K; k++) sum[f][k] = n ? dw_sums[o + f][c][k] : zero();
                for (long t = 0; t < T; t += LANES) {
                    vec right[K];
                    UNROLL for (int k = 0; k < K; k++) right[k] = load(&phases[n][c][PHASE(k)][t + SHIFT(k)]);
                    UNROLL for (int f = 0; f < FILTERS; f++) {
                        vec left = hold(load(&padded[n][o + f][PAD + t]));
                        UNROLL for (int k = 0; k < K; k++) sum[f][k] += left * right[k];
                    }
                }
                UNROLL for (int f = 0; f < FILTERS; f++)
                    UNROLL for (int k = 0; k < K; k++) dw_sums[o + f][c][k] = sum[f][k];
            }
    for (long o = 0; o < O; o++)
        for (long c = mine.from; c < mine.to; c++)
            for (long k = 0; k < K; k++) dw[(o * C + c) * K + k] = horizontal_sum(dw_sums[o][c][k]);
}

void gradient(const real *const *in, real *const *out) {
    const real *w = in[0], *x = in[1], *dy = in[2];
    for (long o = 0; o < O; o++)
        for (long c = 0; c < C; c++)
            for (long k = 0; k < K; k++) by_input[c / ROWS][o][k][c % ROWS] = w[(o * C + c) * K + k];
#pragma omp parallel
    {
        split_phases(x);
        Share mine = share(N * O, 1);
        for (long row = mine.from; row < mine.to; row++)
            memcpy(&padded[row / O][row % O][PAD], dy + row * T, T * sizeof(real));
#pragma omp barrier
        find_dw(out[0]);
        find_dx(out[1]);
    }
}
