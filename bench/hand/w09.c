// W9: r[i, l] = sum[k] x[i + k] * y[i + k + l]
//
// As defined: every term of the sum over k is added by itself (no running sums). A tile is ROWS rows of r by
// 4 vectors; row m = i + k of products x[m] * y[m + l] goes to each row i of the tile with m in i..i+K.
// With s[m, l] = sum[k] dr[m - k, l]:
//   dx[m] = sum[l] s[m, l] * y[m + l],   dy[n] = sum[l] x[n - l] * s[n - l, l]
// The terms of dy are stored with zeros around each row, so that the diagonals of a block can be added as vectors.

#include "real.h"

enum {
    I = SIZE_I, L = SIZE_L, K = SIZE_K,
    X = I + K - 1, Y = I + K + L - 2,
    ROWS = 6, VECTORS = L / LANES < 4 ? L / LANES : 4,
    BLOCK = 16 * ROWS, PITCH = L + 2 * LANES
};
_Static_assert(L % (VECTORS * LANES) == 0 && K > 2 * ROWS && I > K, "whole tiles");

typedef vec Tile[ROWS][VECTORS];

static ALWAYS_INLINE void add_products(const real *x, const real *y, long m, const int from, const int to, Tile sum) {
    vec right[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) right[v] = load(y + m + v * LANES);
    UNROLL for (int row = from; row < to; row++)
        UNROLL for (int v = 0; v < VECTORS; v++) sum[row][v] += x[m] * right[v];
}

// Rows i.. of r, columns from l on (`y` starts there too).
static ALWAYS_INLINE void value_tile(const int rows, const real *x, const real *y, long i, real *r) {
    Tile sum;
    UNROLL for (int row = 0; row < rows; row++) UNROLL for (int v = 0; v < VECTORS; v++) sum[row][v] = zero();
    UNROLL for (int m = 0; m < rows - 1; m++) add_products(x, y, i + m, 0, m + 1, sum);
    for (long m = rows - 1; m < K; m++) add_products(x, y, i + m, 0, rows, sum);
    UNROLL for (int m = 0; m < rows - 1; m++) add_products(x, y, i + K + m, m + 1, rows, sum);
    UNROLL for (int row = 0; row < rows; row++)
        UNROLL for (int v = 0; v < VECTORS; v++) store(r + (i + row) * L + v * LANES, sum[row][v]);
}

void value(const real *const *in, real *const *out) {
    const real *x = in[0], *y = in[1];
#pragma omp parallel
    {
        Share mine = share(I, ROWS);
        for (long l = 0; l < L; l += VECTORS * LANES) {
            long i = mine.from;
            for (; i + ROWS <= mine.to; i += ROWS) value_tile(ROWS, x, y + l, i, out[0] + l);
            for (; i < mine.to; i++) value_tile(1, x, y + l, i, out[0] + l);
        }
    }
}

static ALWAYS_INLINE void add_row(const real *dr, long i, const int from, const int to, Tile sum) {
    if (i < 0 || i >= I) return;
    vec right[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) right[v] = load(dr + i * L + v * LANES);
    UNROLL for (int row = from; row < to; row++) UNROLL for (int v = 0; v < VECTORS; v++) sum[row][v] += right[v];
}

// s for rows m.. and columns from l on (`dr` and `y` start there too): its part of dx, and the terms of dy.
static ALWAYS_INLINE void gradient_tile(const int rows, const real *x, const real *y, const real *dr, long m,
                                        real *terms, vec *dx) {
    Tile sum;
    UNROLL for (int row = 0; row < rows; row++) UNROLL for (int v = 0; v < VECTORS; v++) sum[row][v] = zero();
    UNROLL for (int i = 0; i < rows - 1; i++) add_row(dr, m - K + 1 + i, 0, i + 1, sum);
    long from = m - K + rows, to = m;
    for (long i = from < 0 ? 0 : from; i <= (to < I ? to : I - 1); i++) {
        vec right[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) right[v] = load(dr + i * L + v * LANES);
        UNROLL for (int row = 0; row < rows; row++) UNROLL for (int v = 0; v < VECTORS; v++) sum[row][v] += right[v];
    }
    UNROLL for (int i = 0; i < rows - 1; i++) add_row(dr, m + 1 + i, i + 1, rows, sum);
    UNROLL for (int row = 0; row < rows; row++)
        UNROLL for (int v = 0; v < VECTORS; v++) {
            dx[row] += sum[row][v] * load(y + m + row + v * LANES);
            store(terms + row * PITCH + v * LANES, sum[row][v] * x[m + row]);
        }
}

// dy[n] += sum over the diagonals of the terms of rows first..first+rows.
static void add_diagonals(long first, long rows, const real *terms, real *dy) {
    for (long n = 0; n < rows + L - 1; n += LANES) {
        vec sum = load(dy + first + n);
        long from = n - L + 1 < 0 ? 0 : n - L + 1, to = n + LANES < rows ? n + LANES : rows;
        for (long row = from; row < to; row++) sum += load(terms + row * PITCH + n - row);
        store(dy + first + n, sum);
    }
}

static ALWAYS_INLINE void gradient_rows(const int rows, const real *x, const real *y, const real *dr, long m,
                                        real *terms, real *dx) {
    vec sum[ROWS] = {0};
    for (long l = 0; l < L; l += VECTORS * LANES) gradient_tile(rows, x, y + l, dr + l, m, terms + l, sum);
    UNROLL for (int row = 0; row < rows; row++) dx[m + row] = horizontal_sum(sum[row]);
}

void gradient(const real *const *in, real *const *out) {
    const real *x = in[0], *y = in[1], *dr = in[2];
    static real *parts[MAX_THREADS];
#pragma omp parallel
    {
        real *terms = scratch(0, BLOCK * PITCH) + LANES;
        real *part = parts[omp_get_thread_num()] = scratch(1, Y + LANES);
        memset(part, 0, Y * sizeof(real));
        Share mine = share(X, ROWS);
        for (long first = mine.from; first < mine.to; first += BLOCK) {
            long rows = mine.to - first < BLOCK ? mine.to - first : BLOCK, m = 0;
            for (; m + ROWS <= rows; m += ROWS)
                gradient_rows(ROWS, x, y, dr, first + m, terms + m * PITCH, out[0]);
            for (; m < rows; m++) gradient_rows(1, x, y, dr, first + m, terms + m * PITCH, out[0]);
            add_diagonals(first, rows, terms, part);
        }
#pragma omp barrier
        sum_over_threads(Y, parts, out[1]);
    }
}
