// W5: y[n, o] = tanh(sum[i] W[o, i] * x[n, i] + b[o])
//
// With g = dy * (1 - y^2):
//   dW[o, i] = sum[n] g[n, o] * x[n, i],   dx[n, i] = sum[o] g[n, o] * W[o, i],   db[o] = sum[n] g[n, o]
// Three matrix products of packed operands; the threads divide the rows of each result.

#include "tile.h"

enum { N = SIZE_N, In = SIZE_I, O = SIZE_O };
_Static_assert(O % TILE_COLUMNS == 0 && In % TILE_COLUMNS == 0, "whole tiles");

void value(const real *const *in, real *const *out) {
    const real *W = in[0], *x = in[1], *b = in[2];
    real *y = out[0], *shared = scratch(1, In * O);
#pragma omp parallel
    {
        multiply(N, O, In, (Strided){x, In, 1}, (Strided){W, 1, In}, y, shared);
        Share mine = share(N, TILE_ROWS);
        for (long n = mine.from; n < mine.to; n++)
            for (long o = 0; o < O; o += LANES) store(y + n * O + o, vtanh(load(y + n * O + o) + load(b + o)));
    }
}

void gradient(const real *const *in, real *const *out) {
    const real *W = in[0], *x = in[1], *b = in[2], *dy = in[3];
    real *dW = out[0], *dx = out[1], *db = out[2];
    real *across = scratch(1, In * O), *down = scratch(2, In * O), *rows = scratch(3, N * In), *g = scratch(4, N * O);
    static real *parts[MAX_THREADS];
#pragma omp parallel
    {
        real *part = parts[omp_get_thread_num()] = scratch(5, O);
        memset(part, 0, O * sizeof(real));
        multiply(N, O, In, (Strided){x, In, 1}, (Strided){W, 1, In}, g, across);
        Share mine = share(N, TILE_ROWS);
        for (long n = mine.from; n < mine.to; n++)
            for (long o = 0; o < O; o += LANES) {
                vec y = vtanh(load(g + n * O + o) + load(b + o)), here = load(dy + n * O + o) * (1 - y * y);
                store(g + n * O + o, here);
                store(part + o, load(part + o) + here);
            }
        multiply(N, In, O, (Strided){g, O, 1}, (Strided){W, In, 1}, dx, down);
        multiply(O, In, N, (Strided){g, 1, O}, (Strided){x, In, 1}, dW, rows);
        sum_over_threads(O, parts, db);
    }
}
