// Register-tiled matrix products on small operands that lie in cache.
//
// c[i, j] (+)= sum[p] a[i, p] * b[p, j], where a may have any strides (so it may be transposed), while rows of b and c
// are contiguous in j. A tile is 6 rows by 4 vectors: 24 accumulators, 4 vectors of b and one broadcast of a fill
// the 32 vector registers, and 10 loads feed 24 multiply-adds.

#pragma once
#include "real.h"

#define MAYBE_UNUSED __attribute__((unused))

enum { TILE_ROWS = 6, TILE_VECTORS = 4, TILE_COLUMNS = TILE_VECTORS * LANES };

typedef struct {
    const real *at;
    long row, column;
} Strided;

static ALWAYS_INLINE void tile(const int rows, const int vectors, long depth, Strided a, const real *b, long b_row,
                               real *c, long c_row, const int accumulate) {
    vec sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] = accumulate ? load(c + i * c_row + j * LANES) : zero();
    for (long p = 0; p < depth; p++) {
        vec right[TILE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) right[j] = load(b + p * b_row + j * LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            vec left = splat(a.at[i * a.row + p * a.column]);
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += left * right[j];
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vectors; j++) store(c + i * c_row + j * LANES, sum[i][j]);
}

// A column of tiles: any number of rows, one panel of b.
static ALWAYS_INLINE void panel(const int vectors, long rows, long depth, Strided a, const real *b, long b_row,
                                real *c, long c_row, const int accumulate) {
    long i = 0;
#define TILE(n)                                                                                                        \
    tile(n, vectors, depth, (Strided){a.at + i * a.row, a.row, a.column}, b, b_row, c + i * c_row, c_row, accumulate)
    for (; i + 6 <= rows; i += 6) TILE(6);
    for (; i + 4 <= rows; i += 4) TILE(4);
    for (; i + 2 <= rows; i += 2) TILE(2);
    for (; i < rows; i++) TILE(1);
#undef TILE
}

// The whole product; `columns` is a multiple of LANES. For operands that fit the first cache levels as they are.
static NO_INLINE MAYBE_UNUSED void product(long rows, long columns, long depth, Strided a, const real *b, long b_row,
                                           real *c, long c_row, int accumulate) {
    long j = 0;
#define PANEL(n)                                                                                                       \
    (accumulate ? panel(n, rows, depth, a, b + j, b_row, c + j, c_row, 1)                                              \
                : panel(n, rows, depth, a, b + j, b_row, c + j, c_row, 0))
    for (; j + 4 * LANES <= columns; j += 4 * LANES) PANEL(4);
    for (; j + 2 * LANES <= columns; j += 2 * LANES) PANEL(2);
    for (; j < columns; j += LANES) PANEL(1);
#undef PANEL
}

// For operands larger than that: both are copied so that a tile reads them in order. `a` goes into strips of
// TILE_ROWS rows, [strip][p][row], and `b` into panels of TILE_COLUMNS columns, [panel][p][column].
static inline void pack_left(long rows, long depth, Strided a, real *to) {
    for (long i = 0; i < rows; i += TILE_ROWS, to += TILE_ROWS * depth) {
        long here = rows - i < TILE_ROWS ? rows - i : TILE_ROWS;
        for (long p = 0; p < depth; p++)
            for (long row = 0; row < here; row++) to[p * TILE_ROWS + row] = a.at[(i + row) * a.row + p * a.column];
    }
}

static inline void pack_right(long depth, long columns, Strided b, real *to) {
    for (long j = 0; j < columns; j += TILE_COLUMNS, to += TILE_COLUMNS * depth) {
        if (b.column == 1)
            for (long p = 0; p < depth; p++)
                UNROLL for (int v = 0; v < TILE_COLUMNS; v += LANES)
                    store(to + p * TILE_COLUMNS + v, load(b.at + p * b.row + j + v));
        else
            for (long p = 0; p < depth; p += LANES)
                for (long column = 0; column < TILE_COLUMNS; column++)
                    for (long pp = p; pp < (p + LANES < depth ? p + LANES : depth); pp++)
                        to[pp * TILE_COLUMNS + column] = b.at[pp * b.row + (j + column) * b.column];
    }
}

// c = a * b of packed operands; `columns` is a multiple of TILE_COLUMNS. A slice of a panel stays in the first cache
// while the strips go past it.
static NO_INLINE MAYBE_UNUSED void packed_product(long rows, long columns, long depth, const real *a, const real *b,
                                                  real *c, long c_row) {
    const long slice = 128;
    for (long p = 0; p < depth; p += slice) {
        long here = depth - p < slice ? depth - p : slice;
        for (long j = 0; j < columns; j += TILE_COLUMNS)
            for (long i = 0; i < rows; i += TILE_ROWS) {
                Strided strip = {a + i * depth + p * TILE_ROWS, 1, TILE_ROWS};
                const real *right = b + j * depth + p * TILE_COLUMNS;
                real *at = c + i * c_row + j;
                if (rows - i < TILE_ROWS && p > 0)
                    panel(TILE_VECTORS, rows - i, here, strip, right, TILE_COLUMNS, at, c_row, 1);
                else if (rows - i < TILE_ROWS)
                    panel(TILE_VECTORS, rows - i, here, strip, right, TILE_COLUMNS, at, c_row, 0);
                else if (p > 0)
                    tile(TILE_ROWS, TILE_VECTORS, here, strip, right, TILE_COLUMNS, at, c_row, 1);
                else
                    tile(TILE_ROWS, TILE_VECTORS, here, strip, right, TILE_COLUMNS, at, c_row, 0);
            }
    }
}

// c = a * b for this thread's rows of a; all threads pack their part of b into `shared`.
static MAYBE_UNUSED void multiply(long rows, long columns, long depth, Strided a, Strided b, real *c, real *shared) {
    Share mine = share(rows, TILE_ROWS), panels = share(columns, TILE_COLUMNS);
    real *left = scratch(0, (rows + TILE_ROWS) * depth);
    Strided from = {b.at + panels.from * b.column, b.row, b.column};
    pack_right(depth, panels.to - panels.from, from, shared + panels.from * depth);
    pack_left(mine.to - mine.from, depth, (Strided){a.at + mine.from * a.row, a.row, a.column}, left);
#pragma omp barrier
    packed_product(mine.to - mine.from, columns, depth, left, shared, c + mine.from * columns, columns);
}
