#define GX_WHOLE static inline __attribute__((unused)) int64_t

GX_WHOLE gx_larger(int64_t a, int64_t b) { return a > b ? a : b; }

GX_WHOLE gx_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rounds down; c is positive. */
GX_WHOLE gx_floor_div(int64_t a, int64_t c) { return a / c - (a % c < 0); }
