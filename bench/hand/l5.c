// L5: g[t, n, q, i] = b[q, i] + sum[d] w[q, i, d] * x[t, n, d] + sum[j] u[q, i, j] * h[t - 1, n, j], gates q = in, forget, cell, out
//     c[t] = sigmoid(g1) * c[t - 1] + sigmoid(g0) * tanh(g2),   h[t] = sigmoid(g3) * tanh(c[t])
//
// The products with x for all steps at once; at each step those with h, each thread for its units of all gates, so that its part
// of u stays in its cache. The gradient goes back in the same way, and then does the sums over all steps at once.

#include "tile.h"

enum { T = SIZE_T, B = SIZE_B, D = SIZE_D, U = SIZE_H, G = 4 * U, ROWS = T * B };
_Static_assert(U % TILE_COLUMNS == 0 && D % TILE_COLUMNS == 0, "whole tiles");

// One step for some units: the products, and what becomes of them. The gates stay in g.
static void step(const real *bias, const real *packed_u, real *g, const real *before_h, const real *before_c, real *h, real *c,
                 Share mine) {
    if (before_h)
        for (int q = 0; q < 4; q++)
            for (long i = mine.from; i < mine.to; i += TILE_COLUMNS)
                panel(TILE_VECTORS, B, U, (Strided){before_h, U, 1}, packed_u + (q * U + i) * U, TILE_COLUMNS, g + q * U + i, G, 1);
    for (long n = 0; n < B; n++)
        for (long i = mine.from; i < mine.to; i += LANES) {
            real *at = g + n * G + i;
            vec in = vsigmoid(load(at) + load(bias + i)), forget = vsigmoid(load(at + U) + load(bias + U + i));
            vec cell = vtanh(load(at + 2 * U) + load(bias + 2 * U + i)), out = vsigmoid(load(at + 3 * U) + load(bias + 3 * U + i));
            vec next = in * cell;
            if (before_c) next += forget * load(before_c + n * U + i);
            store(at, in), store(at + U, forget), store(at + 2 * U, cell), store(at + 3 * U, out);
            store(c + n * U + i, next);
            store(h + n * U + i, out * vtanh(next));
        }
}

// Of a region: all steps; gates, cells and states are kept.
static void forward(const real *const *in, real *g, real *h, real *c, real *packed_u, real *packed_w) {
    const real *x = in[0], *w = in[1], *u = in[2], *b = in[3];
    Share mine = share(U, TILE_COLUMNS);
    for (int q = 0; q < 4; q++)
        pack_right(U, mine.to - mine.from, (Strided){u + (q * U + mine.from) * U, 1, U}, packed_u + (q * U + mine.from) * U);
    multiply(ROWS, G, D, (Strided){x, D, 1}, (Strided){w, 1, D}, g, packed_w);
#pragma omp barrier
    for (long t = 0; t < T; t++) {
        long at = t * B * U;
        step(b, packed_u, g + t * B * G, t ? h + at - B * U : 0, t ? c + at - B * U : 0, h + at, c + at, mine);
#pragma omp barrier
    }
}

void value(const real *const *in, real *const *out) {
    real *g = scratch(1, ROWS * G), *c = scratch(2, ROWS * U), *packed_u = scratch(3, G * U), *packed_w = scratch(4, G * D);
#pragma omp parallel
    forward(in, g, out[0], c, packed_u, packed_w);
}

// The derivative by the sums of one step in place of the gates, for some units; dh and dc are what later steps send.
static void back(real *g, const real *before_c, const real *c, const real *dy, const real *dh, real *dc, Share mine, int last) {
    for (long n = 0; n < B; n++)
        for (long i = mine.from; i < mine.to; i += LANES) {
            real *at = g + n * G + i;
            long place = n * U + i;
            vec in = load(at), forget = load(at + U), cell = load(at + 2 * U), out = load(at + 3 * U);
            vec top = vtanh(load(c + place)), arrived = load(dy + place) + (last ? zero() : load(dh + place));
            vec through = arrived * out * (1 - top * top) + (last ? zero() : load(dc + place));
            store(at + 3 * U, arrived * top * out * (1 - out));
            store(at + 2 * U, through * in * (1 - cell * cell));
            store(at + U, before_c ? through * load(before_c + place) * forget * (1 - forget) : zero());
            store(at, through * cell * in * (1 - in));
            store(dc + place, through * forget);
        }
}

void gradient(const real *const *in, real *const *out) {
    const real *x = in[0], *w = in[1], *u = in[2], *dy = in[4];
    real *dx = out[0], *dw = out[1], *du = out[2], *db = out[3];
    real *g = scratch(1, ROWS * G), *c = scratch(2, ROWS * U), *packed_u = scratch(3, G * U), *packed_w = scratch(4, G * (D > U ? D : U));
    real *h = scratch(5, (ROWS + B) * U), *backward_u = scratch(6, G * U), *room = scratch(7, ROWS * (D + U) + 2 * B * U);
    real *dh = room + ROWS * (D + U), *dc = dh + B * U;
#pragma omp parallel
    {
        forward(in, g, h + B * U, c, packed_u, packed_w);
        Share mine = share(U, TILE_COLUMNS), gates = share(G, LANES);
        pack_right(G, mine.to - mine.from, (Strided){u + mine.from, U, 1}, backward_u + mine.from * G);
        for (long t = T - 1; t >= 0; t--) {
            long at = t * B * U;
            back(g + t * B * G, t ? c + at - B * U : 0, c + at, dy + at, dh, dc, mine, t == T - 1);
#pragma omp barrier
            for (long i = mine.from; t && i < mine.to; i += TILE_COLUMNS)
                panel(TILE_VECTORS, B, G, (Strided){g + t * B * G, G, 1}, backward_u + i * G, TILE_COLUMNS, dh + i, U, 0);
        }
#pragma omp barrier
        // The state before the first step is 0: rows of h begin with it.
        multiply(ROWS, D, G, (Strided){g, G, 1}, (Strided){w, D, 1}, dx, packed_w);
#pragma omp barrier
        multiply(G, D, ROWS, (Strided){g, 1, G}, (Strided){x, D, 1}, dw, room);
#pragma omp barrier
        multiply(G, U, ROWS, (Strided){g, 1, G}, (Strided){h, U, 1}, du, room);
#pragma omp barrier
        for (long i = gates.from; i < gates.to; i += LANES) {
            vec sum = zero();
            for (long row = 0; row < ROWS; row++) sum += load(g + row * G + i);
            store(db + i, sum);
        }
    }
}
