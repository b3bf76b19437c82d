// W2: y[i] = sum[j] e[i, j] * w[j],   e[i, j] = exp(-sum[d] (x[i, d] - z[j, d])^2)
//
// With p = dy[i] * e[i, j]:
//   dw[j]    = sum[i] p[i, j]
//   dz[j, d] = 2*w[j] * (sum[i] p[i, j] * x[i, d] - z[j, d] * dw[j])
//   dx[i, d] = -2*dy[i] * (x[i, d] * sum[j] e*w - sum[j] e*w * z[j, d])
// One pass over the pairs: dz and dw stay in registers while i runs over a block of rows; e*w of the block is kept in
// cache for the sums over j.

#include "real.h"

enum { N = SIZE_N, M = SIZE_M, D = SIZE_D, BLOCK = 16, GROUP = 4 };
_Static_assert(N % GROUP == 0 && M % LANES == 0 && D <= 8, "whole tiles");

static real across[D * M] __attribute__((aligned(64))); // z, transposed

static void prepare(const real *z) {
    Share mine = share(M, LANES);
    transpose(mine.to - mine.from, D, z + mine.from * D, D, across + mine.from, M);
#pragma omp barrier
}

// e for `rows` rows of x and one vector of columns.
static ALWAYS_INLINE void kernel(const int rows, const real *x, const vec *z, vec *e) {
    UNROLL for (int r = 0; r < rows; r++) e[r] = zero();
    UNROLL for (int d = 0; d < D; d++)
        UNROLL for (int r = 0; r < rows; r++) {
            vec difference = x[r * D + d] - z[d];
            e[r] -= difference * difference;
        }
    vexp_each(rows, e);
}

void value(const real *const *in, real *const *out) {
    const real *x = in[0], *z = in[1], *w = in[2];
#pragma omp parallel
    {
        prepare(z);
        Share mine = share(N, GROUP);
        for (long i = mine.from; i < mine.to; i += GROUP) {
            vec sum[GROUP] = {0};
            for (long j = 0; j < M; j += LANES) {
                vec here[D], e[GROUP], weight = load(w + j);
                UNROLL for (int d = 0; d < D; d++) here[d] = load(across + d * M + j);
                kernel(GROUP, x + i * D, here, e);
                UNROLL for (int r = 0; r < GROUP; r++) sum[r] += e[r] * weight;
            }
            UNROLL for (int r = 0; r < GROUP; r++) out[0][i + r] = horizontal_sum(sum[r]);
        }
    }
}

// Rows first..first+rows of dx, from their e*w.
static void rows_of_dx(const real *x, const real *dy, const real *weighted, long first, long rows, real *dx) {
    for (long r = 0; r < rows; r += 2) {
        vec sum[2][D + 1] = {0};
        for (long j = 0; j < M; j += LANES) {
            vec even = load(weighted + r * M + j), odd = load(weighted + (r + 1) * M + j);
            UNROLL for (int d = 0; d < D; d++) {
                vec here = hold(load(across + d * M + j));
                sum[0][d] += even * here;
                sum[1][d] += odd * here;
            }
            sum[0][D] += even;
            sum[1][D] += odd;
        }
        UNROLL for (int odd = 0; odd < 2; odd++) {
            long i = first + r + odd;
            real total = horizontal_sum(sum[odd][D]);
            UNROLL for (int d = 0; d < D; d++)
                dx[i * D + d] = -2 * dy[i] * (x[i * D + d] * total - horizontal_sum(sum[odd][d]));
        }
    }
}

void gradient(const real *const *in, real *const *out) {
    const real *x = in[0], *z = in[1], *w = in[2], *dy = in[3];
    real *dx = out[0], *dz = out[1], *dw = out[2];
    static real *parts[MAX_THREADS];
#pragma omp parallel
    {
        prepare(z);
        real *weighted = scratch(0, BLOCK * M), *part = parts[omp_get_thread_num()] = scratch(1, (D + 1) * M);
        memset(part, 0, (D + 1) * M * sizeof(real));
        Share mine = share(N, BLOCK);
        for (long first = mine.from; first < mine.to; first += BLOCK) {
            long rows = mine.to - first < BLOCK ? mine.to - first : BLOCK;
            for (long j = 0; j < M; j += LANES) {
                vec here[D], sum[D + 1], weight = load(w + j);
                UNROLL for (int d = 0; d < D; d++) here[d] = load(across + d * M + j);
                UNROLL for (int d = 0; d <= D; d++) sum[d] = load(part + d * M + j);
                for (long r = 0; r < rows; r += GROUP) {
                    vec e[GROUP];
                    kernel(GROUP, x + (first + r) * D, here, e);
                    UNROLL for (int g = 0; g < GROUP; g++) {
                        long i = first + r + g;
                        store(weighted + (r + g) * M + j, e[g] * weight);
                        vec p = e[g] * dy[i];
                        sum[D] += p;
                        UNROLL for (int d = 0; d < D; d++) sum[d] += p * x[i * D + d];
                    }
                }
                UNROLL for (int d = 0; d <= D; d++) store(part + d * M + j, sum[d]);
            }
            rows_of_dx(x, dy, weighted, first, rows, dx);
        }
#pragma omp barrier
        Share columns = share(M, LANES);
        for (long j = columns.from; j < columns.to; j++) {
            real sum[D + 1] = {0};
            for (int thread = 0; thread < omp_get_num_threads(); thread++)
                for (long d = 0; d <= D; d++) sum[d] += parts[thread][d * M + j];
            dw[j] = sum[D];
            for (long d = 0; d < D; d++) dz[j * D + d] = 2 * w[j] * (sum[d] - z[j * D + d] * sum[D]);
        }
    }
}
