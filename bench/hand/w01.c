// W1: f[i, j] = exp(-sum[k] ((a[i, k] + b[j, k])^2 * c[i, i] + d[i + k]^3))
//
// With q[i, j] = sum[k] (a[i, k] + b[j, k])^2 and g = -df * f:
//   da[i, k] = 2*c[i, i] * (a[i, k] * sum[j] g[i, j] + sum[j] g[i, j] * b[j, k])
//   db[j, k] = 2 * (sum[i] g[i, j] * c[i, i]*a[i, k] + b[j, k] * sum[i] g[i, j] * c[i, i])
//   dc[i, i] = sum[j] g[i, j] * q[i, j],   dd[m] = 3*d[m]^2 * sum[k] G[m - k],   G[i] = sum[j] g[i, j]
// Only BLOCK rows of g exist at a time, in cache; both sums over them are matrix products.

#include "tile.h"

enum { I = SIZE_I, J = SIZE_J, K = SIZE_K, BLOCK = 48, PITCH = J + LANES };
_Static_assert(J % (4 * LANES) == 0 && K % LANES == 0, "whole tiles");

static real cubes[I];          // sum[k] d[i + k]^3
static real across[K * J] __attribute__((aligned(64))); // b, transposed

static void prepare(const real *b, const real *d) {
    Share columns = share(J, 4 * LANES), rows = share(I, 1);
    transpose(columns.to - columns.from, K, b + columns.from * K, K, across + columns.from, J);
    for (long i = rows.from; i < rows.to; i++) {
        real sum = 0;
        for (long k = 0; k < K; k++) sum += d[i + k] * d[i + k] * d[i + k];
        cubes[i] = sum;
    }
#pragma omp barrier
}

// q for `rows` rows from i and 4 vectors from j.
static ALWAYS_INLINE void squares(const int rows, const real *a, long i, long j, vec q[6][4]) {
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 4; v++) q[r][v] = zero();
    for (long k = 0; k < K; k++) {
        vec right[4];
        UNROLL for (int v = 0; v < 4; v++) right[v] = load(across + k * J + j + v * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            vec left = splat(a[(i + r) * K + k]);
            UNROLL for (int v = 0; v < 4; v++) {
                vec both = left + right[v];
                q[r][v] += both * both;
            }
        }
    }
}

// exp(-(scale*q + shift)) of 4 vectors.
static ALWAYS_INLINE void exponentials(real scale, real shift, const vec *q, vec *f) {
    UNROLL for (int v = 0; v < 4; v++) f[v] = -(q[v] * scale + shift);
    vexp_each(4, f);
}

static ALWAYS_INLINE void value_rows(const int rows, const real *a, const real *c, long i, real *f) {
    for (long j = 0; j < J; j += 4 * LANES) {
        vec q[6][4];
        squares(rows, a, i, j, q);
        UNROLL for (int r = 0; r < rows; r++) {
            exponentials(c[(i + r) * (I + 1)], cubes[i + r], q[r], q[r]);
            UNROLL for (int v = 0; v < 4; v++) store(f + (i + r) * J + j + v * LANES, q[r][v]);
        }
    }
}

void value(const real *const *in, real *const *out) {
    const real *a = in[0], *b = in[1], *c = in[2], *d = in[3];
#pragma omp parallel
    {
        prepare(b, d);
        Share mine = share(I, 6);
        long i = mine.from;
        for (; i + 6 <= mine.to; i += 6) value_rows(6, a, c, i, out[0]);
        for (; i < mine.to; i++) value_rows(1, a, c, i, out[0]);
    }
}

// Rows from i of g, into `g`; their sums by row, with 1 and q as weights; and with c as weights into by_column.
static ALWAYS_INLINE void gradient_rows(const int rows, const real *a, const real *c, const real *df, long i, real *g,
                                        real *row_sum, real *row_sum_q, real *by_column) {
    vec sum[6] = {0}, sum_q[6] = {0};
    for (long j = 0; j < J; j += 4 * LANES) {
        vec q[6][4], column[4];
        squares(rows, a, i, j, q);
        UNROLL for (int v = 0; v < 4; v++) column[v] = load(by_column + j + v * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            real scale = c[(i + r) * (I + 1)];
            vec f[4];
            exponentials(scale, cubes[i + r], q[r], f);
            UNROLL for (int v = 0; v < 4; v++) {
                vec here = -load(df + (i + r) * J + j + v * LANES) * f[v];
                sum[r] += here;
                sum_q[r] += here * q[r][v];
                column[v] += here * scale;
                store(g + r * PITCH + j + v * LANES, here);
            }
        }
        UNROLL for (int v = 0; v < 4; v++) store(by_column + j + v * LANES, column[v]);
    }
    UNROLL for (int r = 0; r < rows; r++) {
        row_sum[i + r] = horizontal_sum(sum[r]);
        row_sum_q[i + r] = horizontal_sum(sum_q[r]);
    }
}

void gradient(const real *const *in, real *const *out) {
    const real *a = in[0], *b = in[1], *c = in[2], *d = in[3], *df = in[4];
    real *da = out[0], *db = out[1], *dc = out[2], *dd = out[3];
    static real row_sum[I], row_sum_q[I], *parts[MAX_THREADS];
#pragma omp parallel
    {
        prepare(b, d);
        real *g = scratch(0, BLOCK * PITCH), *scaled = scratch(1, BLOCK * K);
        real *part = parts[omp_get_thread_num()] = scratch(2, J * K + J), *by_column = part + J * K;
        memset(part, 0, (J * K + J) * sizeof(real));
        Share mine = share(I, 6);
        for (long first = mine.from; first < mine.to; first += BLOCK) {
            long rows = mine.to - first < BLOCK ? mine.to - first : BLOCK, r = 0;
            for (; r + 6 <= rows; r += 6)
                gradient_rows(6, a, c, df, first + r, g + r * PITCH, row_sum, row_sum_q, by_column);
            for (; r < rows; r++)
                gradient_rows(1, a, c, df, first + r, g + r * PITCH, row_sum, row_sum_q, by_column);
            for (r = 0; r < rows; r++)
                for (long k = 0; k < K; k++) scaled[r * K + k] = c[(first + r) * (I + 1)] * a[(first + r) * K + k];
            product(rows, K, J, (Strided){g, PITCH, 1}, b, K, da + first * K, K, 0);
            product(J, K, rows, (Strided){g, 1, PITCH}, scaled, K, part, K, 1);
        }
        for (long i = mine.from; i < mine.to; i++) {
            for (long k = 0; k < K; k++)
                da[i * K + k] = 2 * c[i * (I + 1)] * (a[i * K + k] * row_sum[i] + da[i * K + k]);
            memset(dc + i * I, 0, I * sizeof(real));
            dc[i * (I + 1)] = row_sum_q[i];
        }
#pragma omp barrier
        Share columns = share(J, 1), shifts = share(I + K - 1, 1);
        for (long j = columns.from; j < columns.to; j++) {
            real sum[K], weight = 0;
            memset(sum, 0, sizeof sum);
            for (int thread = 0; thread < omp_get_num_threads(); thread++) {
                weight += parts[thread][J * K + j];
                for (long k = 0; k < K; k++) sum[k] += parts[thread][j * K + k];
            }
            for (long k = 0; k < K; k++) db[j * K + k] = 2 * (sum[k] + b[j * K + k] * weight);
        }
        for (long m = shifts.from; m < shifts.to; m++) {
            real sum = 0;
            for (long i = m < K ? 0 : m - K + 1; i <= (m < I ? m : I - 1); i++) sum += row_sum[i];
            dd[m] = 3 * d[m] * d[m] * sum;
        }
    }
}
