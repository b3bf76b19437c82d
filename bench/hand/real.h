// The scalar type `real` (double, or float with -DREAL_F32), vectors of it, an inlined exp and tanh, and threads.
//
// Everything is written with GNU vector extensions of 64 bytes: one AVX-512 register, or two of AVX.

#pragma once
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef REAL_F32
typedef float real;
typedef int32_t bits_t;
enum { LANES = 16, MANTISSA_BITS = 23 };
#else
typedef double real;
typedef int64_t bits_t;
enum { LANES = 8, MANTISSA_BITS = 52 };
#endif

typedef real vec __attribute__((vector_size(64)));
typedef bits_t ivec __attribute__((vector_size(64)));
typedef real vec_unaligned __attribute__((vector_size(64), aligned(sizeof(real)), may_alias));

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NO_INLINE __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")

static ALWAYS_INLINE vec load(const real *at) { return *(const vec_unaligned *)at; }
static ALWAYS_INLINE void store(real *at, vec value) { *(vec_unaligned *)at = value; }

// Stores past the caches, where the address allows it; stream_end makes them visible to other threads.
static ALWAYS_INLINE void stream(real *at, vec value) {
#ifdef __AVX512F__
    if ((uintptr_t)at % 64 == 0) {
        _mm512_stream_si512((void *)at, (__m512i)value);
        return;
    }
#endif
    store(at, value);
}
static ALWAYS_INLINE void stream_end(void) {
#ifdef __AVX512F__
    _mm_sfence();
#endif
}

// The same value, kept in a register: not loaded again by each instruction that uses it.
static ALWAYS_INLINE vec hold(vec value) {
#ifdef __AVX512F__
    __asm__("" : "+v"(value));
#endif
    return value;
}

static ALWAYS_INLINE vec zero(void) { return (vec){0}; }
static ALWAYS_INLINE vec splat(real value) { return value - (vec){0}; }
static ALWAYS_INLINE vec where(ivec mask, vec yes, vec no) { return (vec)((mask & (ivec)yes) | (~mask & (ivec)no)); }
#if defined(__AVX512F__) && defined(REAL_F32)
static ALWAYS_INLINE vec smaller(vec a, vec b) { return _mm512_min_ps(a, b); }
static ALWAYS_INLINE vec larger(vec a, vec b) { return _mm512_max_ps(a, b); }
#elif defined(__AVX512F__)
static ALWAYS_INLINE vec smaller(vec a, vec b) { return _mm512_min_pd(a, b); }
static ALWAYS_INLINE vec larger(vec a, vec b) { return _mm512_max_pd(a, b); }
#else
static ALWAYS_INLINE vec smaller(vec a, vec b) { return where(a < b, a, b); }
static ALWAYS_INLINE vec larger(vec a, vec b) { return where(a > b, a, b); }
#endif

static ALWAYS_INLINE real horizontal_sum(vec value) {
    real sum = 0;
    UNROLL for (int lane = 0; lane < LANES; lane++) sum += value[lane];
    return sum;
}

static ALWAYS_INLINE real horizontal_max(vec value) {
    real largest = value[0];
    UNROLL for (int lane = 1; lane < LANES; lane++) largest = value[lane] > largest ? value[lane] : largest;
    return largest;
}

// exp, to within 2 units in the last place: x = n*ln2 + r, |r| <= ln2/2, a polynomial for exp(r), and n added to the
// exponent. n is rounded by adding 1.5*2^MANTISSA_BITS, which leaves it in the low bits. Arguments beyond the
// normal range are limited to it.
//
// Several vectors at a time go through each step together: a chain of dependent instructions as long as this one would
// leave the multipliers idle.
static ALWAYS_INLINE void vexp_each(const int count, vec *x) {
#ifdef REAL_F32
    const real magic = 0x1.8p23f, ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f, limit = 87;
    const real c[] = {0.49999997f, 0.16666577f, 0.041666554f, 0.0083632329f, 0.0013926251f};
#else
    const real magic = 0x1.8p52, ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45, limit = 708;
    const real c[] = {0.50000000000000010314,     0.1666666666666666746,    0.041666666666623820532,
                      0.0083333333333300381973,   0.0013888888917367080562, 0.00019841269863171556026,
                      0.000024801521057868205199, 2.7557268276905696187e-6, 2.7620201591031548792e-7,
                      2.5100472505694996003e-8};
#endif
    const int last = sizeof c / sizeof *c - 1;
    vec shifted[count], r[count], p[count];
#define EACH UNROLL for (int v = 0; v < count; v++)
    EACH x[v] = larger(smaller(x[v], splat(limit)), splat(-limit));
    EACH shifted[v] = x[v] * (real)1.44269504088896340736 + magic;
    EACH r[v] = shifted[v] - magic;
    EACH x[v] -= r[v] * ln2_high;
    EACH r[v] = x[v] - r[v] * ln2_low;
    EACH p[v] = c[last] * r[v] + c[last - 1];
    UNROLL for (int i = last - 2; i >= 0; i--) EACH p[v] = p[v] * r[v] + c[i];
    EACH p[v] = p[v] * r[v] + 1;
    EACH p[v] = p[v] * r[v] + 1;
    EACH x[v] = (vec)((ivec)p[v] + ((ivec)shifted[v] << MANTISSA_BITS));
#undef EACH
}

static ALWAYS_INLINE vec vexp(vec x) {
    vexp_each(1, &x);
    return x;
}

// log of positive normal numbers: x = m*2^n with m from sqrt(1/2) to sqrt(2), and the series of log((1 + s)/(1 - s)), s = (m - 1)/(m + 1).
static ALWAYS_INLINE vec vlog(vec x) {
#ifdef REAL_F32
    const bits_t root = 0x3f3504f3;
    const int last = 5;
#else
    const bits_t root = 0x3fe6a09e667f3bcd;
    const int last = 11;
#endif
    ivec exponent = ((ivec)x - root) >> MANTISSA_BITS;
    vec f = (vec)((ivec)x - (exponent << MANTISSA_BITS)) - 1, s = f / (f + 2), q = s * s, p = splat(2 / (real)(2 * last + 1));
    UNROLL for (int i = last - 1; i >= 1; i--) p = p * q + 2 / (real)(2 * i + 1);
    return __builtin_convertvector(exponent, vec) * (real)0.69314718055994530942 + (f - s * (f - p * q));
}

// 1/(1 + exp(-x))
static ALWAYS_INLINE vec vsigmoid(vec x) { return 1 / (1 + vexp(-x)); }

// tanh, by exp, and by its series where 1 - 2/(exp(2x) + 1) would cancel.
static ALWAYS_INLINE vec vtanh(vec x) {
    vec square = x * x;
    vec series = x + x * square * (square * (square * (square * (square * (square * (real)(21844. / 6081075)
        - (real)(1382. / 155925)) + (real)(62. / 2835)) - (real)(17. / 315)) + (real)(2. / 15)) - (real)(1. / 3));
    vec large = 1 - 2 / (vexp(x + x) + 1);
    return where(square < (real)0.01, series, large);
}

// This thread's share of 0..count, in multiples of `unit`.
typedef struct {
    long from, to;
} Share;

static inline Share share(long count, long unit) {
    long units = (count + unit - 1) / unit, threads = omp_get_num_threads(), thread = omp_get_thread_num();
    long from = units * thread / threads * unit, to = units * (thread + 1) / threads * unit;
    return (Share){from < count ? from : count, to < count ? to : count};
}

// Room for `count` reals that stays with the thread (slot 0, 1, …) from call to call, on large pages.
static inline real *scratch(int slot, size_t count) {
    static _Thread_local struct { real *at; size_t count; } slots[8];
    if (slots[slot].count < count) {
        const size_t page = 2 << 20, bytes = (count * sizeof(real) + page - 1) / page * page;
        free(slots[slot].at);
        slots[slot].at = aligned_alloc(page, bytes);
        if (!slots[slot].at) abort();
        madvise(slots[slot].at, bytes, MADV_HUGEPAGE);
        memset(slots[slot].at, 0, bytes);
        slots[slot].count = count;
    }
    return slots[slot].at;
}

// target[j, i] = source[i, j]
static inline void transpose(long rows, long columns, const real *source, long source_row, real *target,
                             long target_row) {
    for (long j = 0; j < columns; j += LANES)
        for (long i = 0; i < rows; i++)
            for (long jj = j; jj < (j + LANES < columns ? j + LANES : columns); jj++)
                target[jj * target_row + i] = source[i * source_row + jj];
}

// target = sum over the threads' arrays, each thread summing its share. To be called by all threads of a region.
static inline void sum_over_threads(long count, real *const *part, real *target) {
    Share mine = share(count, LANES);
    for (long i = mine.from; i < mine.to; i++) {
        real sum = 0;
        for (int thread = 0; thread < omp_get_num_threads(); thread++) sum += part[thread][i];
        target[i] = sum;
    }
}

enum { MAX_THREADS = 256 };
