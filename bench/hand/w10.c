// W10: M[i, r] = sum[j, k] T[i, j, k] * B[j, r] * C[k, r]
//
// For each i, with z[j, r] = sum[k] T[i, j, k] * C[k, r] and p[j, r] = dM[i, r] * B[j, r]:
//   M[i, r]  = sum[j] z[j, r] * B[j, r]
//   dB[j, r] += dM[i, r] * z[j, r]
//   dC[k, r] += sum[j] T[i, j, k] * p[j, r]
//   dT[i, j, k] = sum[r] p[j, r] * C[k, r]
// Three matrix products per i, on a slice of T that is in cache; the threads divide i.

#include "tile.h"

enum { I = SIZE_I, J = SIZE_J, K = SIZE_K, R = SIZE_R };
_Static_assert(K % LANES == 0 && R % LANES == 0, "whole tiles");

void value(const real *const *in, real *const *out) {
    const real *T = in[0], *B = in[1], *C = in[2];
#pragma omp parallel
    {
        real *z = scratch(0, J * R);
        Share mine = share(I, 1);
        for (long i = mine.from; i < mine.to; i++) {
            product(J, R, K, (Strided){T + i * J * K, K, 1}, C, R, z, R, 0);
            vec sum[R / LANES] = {0};
            for (long j = 0; j < J; j++)
                UNROLL for (int v = 0; v < R / LANES; v++)
                    sum[v] += load(z + j * R + v * LANES) * load(B + j * R + v * LANES);
            UNROLL for (int v = 0; v < R / LANES; v++) store(out[0] + i * R + v * LANES, sum[v]);
        }
    }
}

void gradient(const real *const *in, real *const *out) {
    const real *T = in[0], *B = in[1], *C = in[2], *dM = in[3];
    real *dT = out[0], *dB = out[1], *dC = out[2];
    static real *b_parts[MAX_THREADS], *c_parts[MAX_THREADS], across[R * K] __attribute__((aligned(64)));
    transpose(K, R, C, R, across, K);
#pragma omp parallel
    {
        real *z = scratch(0, J * R), *p = scratch(1, J * R);
        real *b_part = b_parts[omp_get_thread_num()] = scratch(2, J * R);
        real *c_part = c_parts[omp_get_thread_num()] = scratch(3, K * R);
        memset(b_part, 0, J * R * sizeof(real));
        memset(c_part, 0, K * R * sizeof(real));
        Share mine = share(I, 1);
        for (long i = mine.from; i < mine.to; i++) {
            const real *slice = T + i * J * K;
            product(J, R, K, (Strided){slice, K, 1}, C, R, z, R, 0);
            for (long j = 0; j < J; j++)
                UNROLL for (int v = 0; v < R; v += LANES) {
                    vec upstream = load(dM + i * R + v);
                    store(p + j * R + v, upstream * load(B + j * R + v));
                    store(b_part + j * R + v, load(b_part + j * R + v) + upstream * load(z + j * R + v));
                }
            product(K, R, J, (Strided){slice, 1, K}, p, R, c_part, R, 1);
            product(J, K, R, (Strided){p, R, 1}, across, K, dT + i * J * K, K, 0);
        }
#pragma omp barrier
        sum_over_threads(J * R, b_parts, dB);
        sum_over_threads(K * R, c_parts, dC);
    }
}
