// L8: the Cholesky factor L of A = B Bᵀ + 1
//
// Blocks of columns, each after the products with all before. The gradient goes through the blocks in the other direction
// (Murray, Differentiation of the Cholesky decomposition, 2016), and dB = (dA + dAᵀ) B.

#include "tile.h"

enum { N = SIZE_N, BLOCK = TILE_COLUMNS };
_Static_assert(N % BLOCK == 0, "whole blocks");

static void transposed(long rows, long columns, const real *from, long row, real *to, long to_row, real sign) {
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) to[j * to_row + i] = sign * from[i * row + j];
}

// The lower blocks of B Bᵀ + 1, for the threads of a region.
static void gram(const real *b, real *a, real *turned) {
    Share mine = share(N, BLOCK);
    transposed(mine.to - mine.from, N, b + mine.from * N, N, turned + mine.from, N, 1);
#pragma omp barrier
#pragma omp for schedule(dynamic, 1)
    for (long n = N / BLOCK - 1; n >= 0; n--) {
        long i = n * BLOCK;
        product(BLOCK, i + BLOCK, N, (Strided){b + i * N, N, 1}, turned, N, a + i * N, N, 0);
        for (long q = 0; q < BLOCK; q++) a[(i + q) * N + i + q] += 1;
    }
}

// A block of the diagonal in place, and rows below it: C = C D^-T, with the block and the rows as columns.
static void factor(real *a, long j) {
    real *d = a + j * N + j;
    real row[BLOCK] __attribute__((aligned(64)));
    for (long k = 0; k < BLOCK; k++) {
        real root = sqrt(d[k * N + k]), inverse = 1 / root;
        for (long i = k; i < BLOCK; i++) row[i] = d[i * N + k] * inverse;
        for (long i = k; i < BLOCK; i++) d[i * N + k] = row[i];
        for (long i = k + 1; i < BLOCK; i++)
            for (long q = k + 1; q <= i; q++) d[i * N + q] -= row[i] * row[q];
    }
    real turned[BLOCK * BLOCK] __attribute__((aligned(64)));
    transposed(BLOCK, BLOCK, d, N, turned, BLOCK, 1);
    for (long i = j + BLOCK; i < N; i++) {
        real *at = a + i * N + j;
        for (long k = 0; k < BLOCK; k++) {
            real here = at[k] /= turned[k * BLOCK + k];
            for (long q = k / LANES * LANES; q < BLOCK; q++) at[q] -= q > k ? here * turned[k * BLOCK + q] : 0;
        }
    }
}

// a = a - (columns before j) (rows of the block before j)ᵀ, for its columns of the block.
static void update(real *a, long j, real *turned) {
    transposed(BLOCK, j, a + j * N, N, turned, BLOCK, -1);
    product(N - j, BLOCK, j, (Strided){a + j * N, N, 1}, turned, BLOCK, a + j * N + j, N, 1);
}

static void cholesky(real *a, real *turned) {
    for (long j = 0; j < N; j += BLOCK) {
        if (j) update(a, j, turned);
        factor(a, j);
    }
    for (long i = 0; i < N; i++) memset(a + i * N + i + 1, 0, (N - i - 1) * sizeof(real));
}

void value(const real *const *in, real *const *out) {
    real *turned = scratch(0, N * N);
#pragma omp parallel
    gram(in[0], out[0], turned);
    cholesky(out[0], turned);
}

// The derivative of a factored block by itself, in place of that by its factor.
static void back(const real *d, real *g) {
    for (long j = BLOCK - 1; j >= 0; j--) {
        real diagonal = g[j * N + j], inverse = 1 / d[j * N + j];
        for (long i = j + 1; i < BLOCK; i++) {
            g[i * N + j] *= inverse;
            diagonal -= g[i * N + j] * d[i * N + j];
        }
        g[j * N + j] = diagonal * inverse / 2;
        for (long i = j + 1; i < BLOCK; i++)
            for (long k = 0; k < j; k++) {
                g[i * N + k] -= g[i * N + j] * d[j * N + k];
                g[j * N + k] -= g[i * N + j] * d[i * N + k];
            }
        for (long k = 0; k < j; k++) g[j * N + k] -= 2 * g[j * N + j] * d[j * N + k];
    }
}

static void adjoint(const real *l, real *g, real *turned) {
    for (long j = N - BLOCK; j >= 0; j -= BLOCK) {
        long below = N - j - BLOCK, under = j + BLOCK;
        const real *d = l + j * N + j;
        // C' = dC D^-1
        for (long i = under; i < N; i++) {
            real *at = g + i * N + j;
            for (long k = BLOCK - 1; k >= 0; k--) {
                real here = at[k] /= d[k * N + k];
                for (long q = 0; q < k; q++) at[q] -= here * d[k * N + q];
            }
        }
        transposed(below, BLOCK, g + under * N + j, N, turned, N, -1);
        if (below) product(BLOCK, BLOCK, below, (Strided){turned, N, 1}, l + under * N + j, N, g + j * N + j, N, 1);
        back(d, g + j * N + j);
        if (!j) break;
        // dB -= C' E and dE -= C'ᵀ B + (D' + D'ᵀ) E
        real *minus = turned + BLOCK * N, both[BLOCK * BLOCK];
        for (long i = under; i < N; i++)
            for (long k = 0; k < BLOCK; k++) minus[i * BLOCK + k] = -g[i * N + j + k];
        if (below) {
            product(below, j, BLOCK, (Strided){minus + under * BLOCK, BLOCK, 1}, l + j * N, N, g + under * N, N, 1);
            product(BLOCK, j, below, (Strided){turned, N, 1}, l + under * N, N, g + j * N, N, 1);
        }
        for (long i = 0; i < BLOCK; i++)
            for (long k = 0; k < BLOCK; k++) {
                real lower = k <= i ? g[(j + i) * N + j + k] : 0, upper = i <= k ? g[(j + k) * N + j + i] : 0;
                both[i * BLOCK + k] = -lower - upper;
            }
        product(BLOCK, j, BLOCK, (Strided){both, BLOCK, 1}, l + j * N, N, g + j * N, N, 1);
    }
}

void gradient(const real *const *in, real *const *out) {
    const real *b = in[0], *dl = in[1];
    real *turned = scratch(0, 2 * N * N), *l = scratch(1, N * N), *g = scratch(2, N * N), *both = scratch(3, N * N);
#pragma omp parallel
    gram(b, l, turned);
    cholesky(l, turned);
    memcpy(g, dl, N * N * sizeof(real));
    adjoint(l, g, turned);
#pragma omp parallel
    {
        Share mine = share(N, BLOCK);
        for (long i = mine.from; i < mine.to; i++) {
            for (long j = 0; j < i; j++) both[i * N + j] = g[i * N + j];
            both[i * N + i] = 2 * g[i * N + i];
            for (long j = i + 1; j < N; j++) both[i * N + j] = g[j * N + i];
        }
        product(mine.to - mine.from, N, N, (Strided){both + mine.from * N, N, 1}, b, N, out[0] + mine.from * N, N, 0);
    }
}
