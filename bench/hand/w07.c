// W7: o[i, d] = sum[j] p[i, j] * v[j, d],   p = softmax over j of s,   s[i, j] = scale * sum[d] q[i, d] * k[j, d]
//
// With e[i, j] = sum[d] do[i, d] * v[j, d] and g = p * (e - sum[j] p*e):
//   dv[j, d] = sum[i] p[i, j] * do[i, d],   dk[j, d] = scale * sum[i] g[i, j] * q[i, d]
//   dq[i, d] = scale * r[i, d],   dscale = sum[i, d] q[i, d] * r[i, d],   r[i, d] = sum[j] g[i, j] * k[j, d]
// BLOCK rows of s and e at a time; all five sums are matrix products. The threads divide i, and add up dk and dv.

#include "tile.h"

enum { N = SIZE_N, D = SIZE_D, BLOCK = 48, PITCH = N + LANES, DEPTH = 64 };
_Static_assert(N % TILE_COLUMNS == 0 && N % DEPTH == 0 && D % LANES == 0, "whole tiles");

// target[i, j] = sum[d] rows[i, d] * right[j, d], the right operand packed.
static void across(long count, const real *rows, const real *packed, real *target) {
    for (long j = 0; j < N; j += TILE_COLUMNS)
        product(count, TILE_COLUMNS, D, (Strided){rows, D, 1}, packed + j * D, TILE_COLUMNS, target + j, PITCH, 0);
}

// target[i, d] = sum[j] weights[i, j] * right[j, d], in slices of j whose part of `right` stays in cache.
static void combine(long count, const real *weights, const real *right, real *target) {
    for (long j = 0; j < N; j += DEPTH)
        product(count, D, DEPTH, (Strided){weights + j, PITCH, 1}, right + j * D, D, target, D, j > 0);
}

// s becomes exp(scale*s - max), and the result is 1 / its sum.
static real exponentials(real scale, real *s) {
    vec largest = splat(-INFINITY), sum = zero();
    for (long j = 0; j < N; j += LANES) largest = larger(largest, scale * load(s + j));
    real shift = horizontal_max(largest);
    for (long j = 0; j < N; j += 4 * LANES) {
        vec here[4];
        UNROLL for (int v = 0; v < 4; v++) here[v] = scale * load(s + j + v * LANES) - shift;
        vexp_each(4, here);
        UNROLL for (int v = 0; v < 4; v++) {
            store(s + j + v * LANES, here[v]);
            sum += here[v];
        }
    }
    return 1 / horizontal_sum(sum);
}

static void pack(const real *rows, real *packed) {
    Share mine = share(N, TILE_COLUMNS);
    pack_right(D, mine.to - mine.from, (Strided){rows + mine.from * D, 1, D}, packed + mine.from * D);
}

void value(const real *const *in, real *const *out) {
    const real *q = in[0], *k = in[1], *v = in[2], scale = *in[3];
    real *packed = scratch(0, N * D);
#pragma omp parallel
    {
        pack(k, packed);
#pragma omp barrier
        real *s = scratch(1, BLOCK * PITCH);
        Share mine = share(N, 2);
        for (long i = mine.from; i < mine.to; i += BLOCK) {
            long rows = mine.to - i < BLOCK ? mine.to - i : BLOCK;
            real inverse[BLOCK];
            across(rows, q + i * D, packed, s);
            for (long r = 0; r < rows; r++) inverse[r] = exponentials(scale, s + r * PITCH);
            combine(rows, s, v, out[0] + i * D);
            for (long r = 0; r < rows; r++)
                for (long d = 0; d < D; d++) out[0][(i + r) * D + d] *= inverse[r];
        }
    }
}

// From row i of exp(scale*s - max) and of e: p and g in their places.
static void differentiate_softmax(real inverse, real *p, real *e) {
    vec mean = zero();
    for (long j = 0; j < N; j += LANES) {
        vec here = load(p + j) * inverse;
        store(p + j, here);
        mean += here * load(e + j);
    }
    real shift = horizontal_sum(mean);
    for (long j = 0; j < N; j += LANES) store(e + j, load(p + j) * (load(e + j) - shift));
}

void gradient(const real *const *in, real *const *out) {
    const real *q = in[0], *k = in[1], *v = in[2], scale = *in[3], *upstream = in[4];
    real *dq = out[0], *dk = out[1], *dv = out[2];
    real *packed_k = scratch(0, N * D), *packed_v = scratch(1, N * D);
    static real *k_parts[MAX_THREADS], *v_parts[MAX_THREADS];
    double dscale = 0;
#pragma omp parallel reduction(+ : dscale)
    {
        pack(k, packed_k);
        pack(v, packed_v);
        real *p = scratch(2, BLOCK * PITCH), *e = scratch(3, BLOCK * PITCH), *scaled = scratch(4, BLOCK * D);
        real *k_part = k_parts[omp_get_thread_num()] = scratch(5, N * D);
        real *v_part = v_parts[omp_get_thread_num()] = scratch(6, N * D);
        memset(k_part, 0, N * D * sizeof(real));
        memset(v_part, 0, N * D * sizeof(real));
#pragma omp barrier
        Share mine = share(N, 2);
        for (long i = mine.from; i < mine.to; i += BLOCK) {
            long rows = mine.to - i < BLOCK ? mine.to - i : BLOCK;
            across(rows, q + i * D, packed_k, p);
            across(rows, upstream + i * D, packed_v, e);
            for (long r = 0; r < rows; r++)
                differentiate_softmax(exponentials(scale, p + r * PITCH), p + r * PITCH, e + r * PITCH);
            product(N, D, rows, (Strided){p, 1, PITCH}, upstream + i * D, D, v_part, D, 1);
            for (long x = 0; x < rows * D; x++) scaled[x] = scale * q[i * D + x];
            product(N, D, rows, (Strided){e, 1, PITCH}, scaled, D, k_part, D, 1);
            combine(rows, e, k, dq + i * D);
            real sum = 0;
            for (long x = i * D; x < (i + rows) * D; x++) {
                sum += q[x] * dq[x];
                dq[x] *= scale;
            }
            dscale += sum;
        }
#pragma omp barrier
        sum_over_threads(N * D, k_parts, dk);
        sum_over_threads(N * D, v_parts, dv);
    }
    *out[3] = dscale;
}
