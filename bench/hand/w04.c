// W4: y[n, o, h, v] = sum[c, p, q] w[o, c, p, q] * x[n, c, h + p - 1, v + q - 1], x being 0 outside
//
// dx is the same convolution of dy with the filters turned by 180 degrees and their channels exchanged. In
// dw[o, c, p, q] the sum over n, h and v is in vectors along v, which are reduced at the very end.

#include "real.h"

enum {
    N = SIZE_N, O = SIZE_O, C = SIZE_C, H = SIZE_H, V = SIZE_V,
    BIG = O > C ? O : C,
    PITCH = V + 2 * LANES, // a padded row: the image starts at LANES
    ROWS = 8,              // channels in a tile, with 2 vectors
    BAND = 4               // image rows that dw takes at a time
};
_Static_assert(V % (2 * LANES) == 0 && O % ROWS == 0 && C % ROWS == 0 && H % BAND == 0, "whole tiles");

typedef real Padded[BIG][H + 2][PITCH];
typedef real Filters[BIG][3][3][ROWS];

static Padded padded_x[N] __attribute__((aligned(64))), padded_dy[N] __attribute__((aligned(64)));
static Filters filters[BIG / ROWS] __attribute__((aligned(64)));
static vec dw_sums[O][C][3][3];

static void pad(long channels, const real *image, Padded *padded) {
    Share mine = share(N * channels, 1);
    for (long row = mine.from; row < mine.to; row++)
        for (long h = 0; h < H; h++)
            memcpy(&padded[row / channels][row % channels][h + 1][LANES], image + (row * H + h) * V, V * sizeof(real));
}

// y[n, o, h, v] for all o, from `inputs` padded channels.
static void convolve(long inputs, long outputs, Padded *padded, real *y) {
    Share mine = share(N * H, BAND);
    for (long band = mine.from; band < mine.to; band += BAND)
        for (long o = 0; o < outputs; o += ROWS)
            for (long v = 0; v < V; v += 2 * LANES)
                for (long row = band; row < band + BAND; row++) {
                    long n = row / H, h = row % H;
                    vec sum[ROWS][2] = {0};
                    for (long c = 0; c < inputs; c++)
                        UNROLL for (int p = 0; p < 3; p++)
                            UNROLL for (int q = 0; q < 3; q++) {
                                const real *at = &padded[n][c][h + p][v + LANES - 1 + q];
                                vec left = load(at), right = load(at + LANES);
                                UNROLL for (int r = 0; r < ROWS; r++) {
                                    sum[r][0] += filters[o / ROWS][c][p][q][r] * left;
                                    sum[r][1] += filters[o / ROWS][c][p][q][r] * right;
                                }
                            }
                    UNROLL for (int r = 0; r < ROWS; r++) {
                        real *at = y + ((n * outputs + o + r) * H + h) * V + v;
                        store(at, sum[r][0]);
                        store(at + LANES, sum[r][1]);
                    }
                }
}

void value(const real *const *in, real *const *out) {
    const real *w = in[0], *x = in[1];
    for (long o = 0; o < O; o++)
        for (long c = 0; c < C; c++)
            for (long p = 0; p < 3; p++)
                for (long q = 0; q < 3; q++) filters[o / ROWS][c][p][q][o % ROWS] = w[((o * C + c) * 3 + p) * 3 + q];
#pragma omp parallel
    {
        pad(C, x, padded_x);
#pragma omp barrier
        convolve(C, O, padded_x, out[0]);
    }
}

// Adds a band of image rows to the sums of ROWS filters from o, and one p.
static ALWAYS_INLINE void add_band(long n, long h, long o, long c, long p) {
    vec sum[ROWS][3];
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int q = 0; q < 3; q++) sum[r][q] = dw_sums[o + r][c][p][q];
    for (long row = h; row < h + BAND; row++)
        for (long v = 0; v < V; v += LANES) {
            vec right[3];
            UNROLL for (int q = 0; q < 3; q++) right[q] = load(&padded_x[n][c][row + p][v + LANES - 1 + q]);
            UNROLL for (int r = 0; r < ROWS; r++) {
                vec left = hold(load(&padded_dy[n][o + r][row + 1][v + LANES]));
                UNROLL for (int q = 0; q < 3; q++) sum[r][q] += left * right[q];
            }
        }
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int q = 0; q < 3; q++) dw_sums[o + r][c][p][q] = sum[r][q];
}

static void find_dw(real *dw) {
    Share mine = share(C, 1);
    for (long o = 0; o < O; o++) memset(dw_sums[o][mine.from], 0, (mine.to - mine.from) * sizeof dw_sums[0][0]);
    for (long n = 0; n < N; n++)
        for (long h = 0; h < H; h += BAND)
            for (long o = 0; o < O; o += ROWS)
                for (long c = mine.from; c < mine.to; c++)
                    for (long p = 0; p < 3; p++) add_band(n, h, o, c, p);
    for (long o = 0; o < O; o++)
        for (long c = mine.from; c < mine.to; c++)
            for (long p = 0; p < 3; p++)
                for (long q = 0; q < 3; q++)
                    dw[((o * C + c) * 3 + p) * 3 + q] = horizontal_sum(dw_sums[o][c][p][q]);
}

void gradient(const real *const *in, real *const *out) {
    const real *w = in[0], *x = in[1], *dy = in[2];
    for (long o = 0; o < O; o++)
        for (long c = 0; c < C; c++)
            for (long p = 0; p < 3; p++)
                for (long q = 0; q < 3; q++)
                    filters[c / ROWS][o][2 - p][2 - q][c % ROWS] = w[((o * C + c) * 3 + p) * 3 + q];
#pragma omp parallel
    {
        pad(C, x, padded_x);
        pad(O, dy, padded_dy);
#pragma omp barrier
        find_dw(out[0]);
        convolve(O, C, padded_dy, out[1]);
    }
}
