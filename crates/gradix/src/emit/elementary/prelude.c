/* Vectors of numbers, and what the functions below are built from. The file that this text is part of defines GX_F64
 * or GX_F32 first: gx_t is its type of number, gx_v a vector of GX_W of them, gx_i and gx_u integers of the same
 * width. A mask is a gx_i whose lanes are all ones or zero, as comparisons give them. GNU vector extensions suffice;
 * instructions stand only where those have no word for a good one. GCC knows them without a header, and to read
 * <immintrin.h> takes longer than to compile most kernels; the names that Clang has besides it come and go.
 */
#include <stdint.h>
#if defined(__clang__) && defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define GX_INLINE static inline __attribute__((always_inline, unused))
#define GX_PASTE(a, b, c, d) a##b##c##d
#define GX_JOIN(a, b, c, d) GX_PASTE(a, b, c, d)

/* GX_PICK(a, b) is a in f64 and b in f32. */
#if defined(GX_F64)
#define GX_PICK(f64, f32) f64
typedef double gx_t;
typedef int64_t gx_int;
typedef uint64_t gx_uint;
#elif defined(GX_F32)
#define GX_PICK(f64, f32) f32
typedef float gx_t;
typedef int32_t gx_int;
typedef uint32_t gx_uint;
#else
#error "define GX_F64 or GX_F32"
#endif

/* GX_X is an instruction on gx_v: by the name of its intrinsic in Clang, by that of its builtin function in GCC. */
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define GX_BYTES 64
#define GX_X(intrinsic, builtin) GX_NAME(_mm512_, intrinsic, builtin, 512_mask)
#elif defined(__AVX__)
#define GX_BYTES 32
#define GX_X(intrinsic, builtin) GX_NAME(_mm256_, intrinsic, builtin, 256)
#else
#define GX_BYTES 16
#define GX_X(intrinsic, builtin) GX_NAME(_mm_, intrinsic, builtin, )
#endif
#if defined(__clang__)
#define GX_NAME(prefix, intrinsic, builtin, size) GX_JOIN(prefix, intrinsic, GX_PICK(_pd, _ps), )
#else
#define GX_NAME(prefix, intrinsic, builtin, size) GX_JOIN(__builtin_ia32_, builtin, GX_PICK(d, s), size)
#endif
#define GX_W (GX_BYTES / GX_PICK(8, 4))

typedef gx_t gx_v __attribute__((vector_size(GX_BYTES)));
typedef gx_int gx_i __attribute__((vector_size(GX_BYTES)));
typedef gx_uint gx_u __attribute__((vector_size(GX_BYTES)));
typedef GX_PICK(uint8_t, uint16_t) gx_bits;
typedef gx_t gx_in_memory __attribute__((vector_size(GX_BYTES), aligned(GX_PICK(8, 4)), may_alias));

/* What instructions on 64 bytes take besides: in GCC what lanes that a mask leaves out get, the mask, the rounding. */
#if defined(__clang__)
#define GX_ALL(x)
#define GX_ALL_ROUNDED(x)
#define GX_ROUNDED
#elif GX_BYTES == 64
#define GX_ALL(x) , x, (gx_bits)-1
#define GX_ALL_ROUNDED(x) , x, (gx_bits)-1, 4
#define GX_ROUNDED , (gx_bits)-1, 4
#else
#define GX_ALL_ROUNDED(x)
#define GX_ROUNDED
#endif

/* The bits of a number: the mantissa's width, the sign, and the exponent's bias. */
#define GX_MANTISSA GX_PICK(52, 23)
#define GX_SIGN ((gx_int)((gx_uint)1 << GX_PICK(63, 31)))
#define GX_BIAS GX_PICK(1023, 127)
#define GX_INF ((gx_t)__builtin_inf())
#define GX_NAN ((gx_t)__builtin_nan(""))

/* The loop over a constant number of rounds after it is written out. */
#if defined(__clang__)
#define GX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define GX_UNROLL _Pragma("GCC unroll 64")
#endif

/* ---- lanes and memory ---- */

GX_INLINE gx_v gx_all(gx_t x) { return x - (gx_v){0}; }

GX_INLINE gx_i gx_all_i(gx_int x) { return x - (gx_i){0}; }

/* The scalar version of a function: lane 0, so the same bits. */
#define GX_SCALAR(name)                                                                                                \
    GX_INLINE gx_t gx_##name##_1(gx_t x) { return gx_##name(gx_all(x))[0]; }
#define GX_SCALAR2(name)                                                                                               \
    GX_INLINE gx_t gx_##name##_1(gx_t x, gx_t y) { return gx_##name(gx_all(x), gx_all(y))[0]; }

GX_INLINE gx_v gx_iota(void) {
    gx_v v = {0};
    GX_UNROLL
    for (int i = 0; i < GX_W; i++) v[i] = (gx_t)i;
    return v;
}

GX_INLINE gx_v gx_load(const gx_t *p) { return *(const gx_in_memory *)p; }

GX_INLINE void gx_store(gx_t *p, gx_v v) { *(gx_in_memory *)p = v; }

/* The vector at p past the caches, if it lies on a boundary of vectors. gx_streamed() comes before other threads read. */
#if defined(__clang__) && defined(__SSE2__)
#define GX_STREAM(p, v) __builtin_nontemporal_store(v, (gx_v *)(void *)(p))
#elif defined(__SSE2__) && GX_BYTES == 64
#define GX_STREAM(p, v) GX_PICK(__builtin_ia32_movntpd512, __builtin_ia32_movntps512)(p, v)
#elif defined(__SSE2__) && GX_BYTES == 32
#define GX_STREAM(p, v) GX_PICK(__builtin_ia32_movntpd256, __builtin_ia32_movntps256)(p, v)
#elif defined(__SSE2__)
#define GX_STREAM(p, v) GX_PICK(__builtin_ia32_movntpd, __builtin_ia32_movntps)(p, v)
#else
#define GX_STREAM(p, v) gx_store(p, v)
#endif

GX_INLINE void gx_stream(gx_t *p, gx_v v) {
    if ((uintptr_t)p % GX_BYTES == 0) GX_STREAM(p, v);
    else gx_store(p, v);
}

GX_INLINE void gx_streamed(void) {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}

/* A mask as GCC's functions want it: of long long, which int64_t may not be. */
typedef GX_PICK(long long, int) gx_lanes __attribute__((vector_size(GX_BYTES)));
#define GX_LANES(mask) ((gx_lanes)(mask))

/* The first n numbers, 0 <= n <= GX_W, and zeros; what lies behind them is not touched. */
GX_INLINE gx_v gx_load_n(const gx_t *p, int64_t n) {
#if GX_BYTES == 64 && defined(__clang__)
    return GX_X(maskz_loadu, )((gx_bits)((1u << n) - 1), p);
#elif GX_BYTES == 64
    return GX_X(, loadup)((const void *)p, (gx_v){0}, (gx_bits)((1u << n) - 1));
#elif defined(__AVX2__) && defined(__clang__)
    return GX_X(maskload, )(p, (__m256i)(gx_iota() < gx_all((gx_t)n)));
#elif defined(__AVX2__)
    return GX_X(, maskloadp)((const void *)p, GX_LANES(gx_iota() < gx_all((gx_t)n)));
#else
    gx_v v = {0};
    for (int64_t i = 0; i < n; i++) v[i] = p[i];
    return v;
#endif
}

/* The lanes whose bits are set. */
#if GX_BYTES == 64 && defined(__clang__)
#define gx_store_m(p, v, bits) GX_X(mask_storeu, )(p, bits, v)
#elif GX_BYTES == 64
#define gx_store_m(p, v, bits) GX_X(, storeup)((void *)(p), v, bits)
#endif

GX_INLINE void gx_store_n(gx_t *p, gx_v v, int64_t n) {
#if GX_BYTES == 64
    gx_store_m(p, v, (gx_bits)((1u << n) - 1));
#elif defined(__AVX2__) && defined(__clang__)
    GX_X(maskstore, )(p, (__m256i)(gx_iota() < gx_all((gx_t)n)), v);
#elif defined(__AVX2__)
    GX_X(, maskstorep)((void *)p, GX_LANES(gx_iota() < gx_all((gx_t)n)), v);
#else
    for (int64_t i = 0; i < n; i++) p[i] = v[i];
#endif
}

/* GX_LOW and GX_HIGH interleave the lower and the higher halves of two vectors, GX_EVEN takes every second lane, first
 * the even ones of a and then the odd ones of b. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define GX_SHUFFLES 1
#endif
#endif
#if defined(GX_SHUFFLES) && GX_W == 16
#define GX_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define GX_HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define GX_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
#elif defined(GX_SHUFFLES) && GX_W == 8
#define GX_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define GX_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define GX_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15)
#elif defined(GX_SHUFFLES) && GX_W == 4
#define GX_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define GX_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define GX_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 5, 7)
#elif defined(GX_SHUFFLES) && GX_W == 2
#define GX_LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define GX_HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#define GX_EVEN(a, b) __builtin_shufflevector(a, b, 0, 3)
#endif

/* Numbers that are stride apart; those in between are not changed. */
GX_INLINE gx_v gx_load_s(const gx_t *p, int64_t stride) {
#ifdef GX_SHUFFLES
    if (stride == 2) return GX_EVEN(gx_load(p), gx_load(p + GX_W - 1));
#endif
    gx_v v = {0};
    GX_UNROLL
    for (int i = 0; i < GX_W; i++) v[i] = p[i * stride];
    return v;
}

GX_INLINE gx_v gx_load_sn(const gx_t *p, int64_t stride, int64_t n) {
    gx_v v = {0};
    for (int64_t i = 0; i < n; i++) v[i] = p[i * stride];
    return v;
}

GX_INLINE void gx_store_s(gx_t *p, int64_t stride, gx_v v) {
#if defined(GX_SHUFFLES) && GX_BYTES == 64
    if (stride == 2) {
        gx_store_m(p, GX_LOW(v, v), (gx_bits)0x5555);
        gx_store_m(p + GX_W, GX_HIGH(v, v), (gx_bits)0x5555);
        return;
    }
#endif
    GX_UNROLL
    for (int i = 0; i < GX_W; i++) p[i * stride] = v[i];
}

GX_INLINE void gx_store_sn(gx_t *p, int64_t stride, gx_v v, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i * stride] = v[i];
}

/* ---- masks and bits ---- */

/* a where the mask is set, b elsewhere; in the form that the compiler turns into one blend. */
GX_INLINE gx_v gx_select(gx_i mask, gx_v a, gx_v b) {
#if GX_BYTES == 64 && !defined(__clang__)
    return (gx_v)((mask & (gx_i)a) | ((mask == 0) & (gx_i)b));
#else
    return (gx_v)((mask & (gx_i)a) | (~mask & (gx_i)b));
#endif
}

GX_INLINE int gx_any(gx_i mask) {
#if GX_BYTES == 64 && defined(__clang__)
    return GX_PICK(_mm512_movepi64_mask, _mm512_movepi32_mask)((__m512i)mask) != 0;
#elif GX_BYTES == 64
    return GX_PICK(__builtin_ia32_cvtq2mask512, __builtin_ia32_cvtd2mask512)(GX_LANES(mask)) != 0;
#elif defined(__SSE2__)
    return GX_X(movemask, movmskp)((gx_v)mask) != 0;
#else
    gx_int any = 0;
    for (int i = 0; i < GX_W; i++) any |= mask[i];
    return any != 0;
#endif
}

GX_INLINE gx_v gx_abs(gx_v x) { return (gx_v)((gx_i)x & ~gx_all_i(GX_SIGN)); }
GX_SCALAR(abs)

GX_INLINE gx_v gx_negative_abs(gx_v x) { return (gx_v)((gx_i)x | gx_all_i(GX_SIGN)); }

/* x with the sign of s, for x >= 0; and x times the sign of s. */
GX_INLINE gx_v gx_signed(gx_v x, gx_v s) { return (gx_v)((gx_i)x | ((gx_i)s & gx_all_i(GX_SIGN))); }

GX_INLINE gx_v gx_flip(gx_v x, gx_v s) { return (gx_v)((gx_i)x ^ ((gx_i)s & gx_all_i(GX_SIGN))); }

/* ---- arithmetic ---- */

/* a b + c, and c - a b: rounded once where GX_FUSED is defined, twice elsewhere. */
#if defined(__FMA__) || GX_BYTES == 64
#define GX_FUSED
GX_INLINE gx_v gx_fma(gx_v a, gx_v b, gx_v c) { return GX_X(fmadd, vfmaddp)(a, b, c GX_ROUNDED); }
GX_INLINE gx_v gx_fnma(gx_v a, gx_v b, gx_v c) { return GX_X(fnmadd, vfnmaddp)(a, b, c GX_ROUNDED); }
#elif defined(__aarch64__)
#define GX_FUSED
GX_INLINE gx_v gx_fma(gx_v a, gx_v b, gx_v c) { return GX_PICK(vfmaq_f64, vfmaq_f32)(c, a, b); }
GX_INLINE gx_v gx_fnma(gx_v a, gx_v b, gx_v c) { return GX_PICK(vfmsq_f64, vfmsq_f32)(c, a, b); }
#else
GX_INLINE gx_v gx_fma(gx_v a, gx_v b, gx_v c) { return a * b + c; }
GX_INLINE gx_v gx_fnma(gx_v a, gx_v b, gx_v c) { return c - a * b; }
#endif

/* x limited to the side of a constant; NaN stays NaN. */
GX_INLINE gx_v gx_at_most(gx_v x, gx_t limit) {
#if defined(__SSE2__)
    return GX_X(min, minp)(gx_all(limit), x GX_ALL_ROUNDED(x));
#else
    return gx_select(gx_all(limit) < x, gx_all(limit), x);
#endif
}

GX_INLINE gx_v gx_at_least(gx_v x, gx_t limit) {
#if defined(__SSE2__)
    return GX_X(max, maxp)(gx_all(limit), x GX_ALL_ROUNDED(x));
#else
    return gx_select(gx_all(limit) > x, gx_all(limit), x);
#endif
}

/* The smaller and the larger: y where they are equal, and NaN where either is. */
GX_INLINE gx_v gx_min(gx_v x, gx_v y) {
#if defined(__SSE2__)
    return gx_select(x != x, x, GX_X(min, minp)(x, y GX_ALL_ROUNDED(x)));
#else
    return gx_select((x < y) | (x != x), x, y);
#endif
}
GX_SCALAR2(min)

GX_INLINE gx_v gx_max(gx_v x, gx_v y) {
#if defined(__SSE2__)
    return gx_select(x != x, x, GX_X(max, maxp)(x, y GX_ALL_ROUNDED(x)));
#else
    return gx_select((x > y) | (x != x), x, y);
#endif
}
GX_SCALAR2(max)

GX_INLINE gx_v gx_sqrt(gx_v x) {
#if defined(__SSE2__)
    return GX_X(sqrt, sqrtp)(x GX_ALL_ROUNDED(x));
#elif defined(__aarch64__)
    return GX_PICK(vsqrtq_f64, vsqrtq_f32)(x);
#else
    for (int i = 0; i < GX_W; i++) x[i] = GX_PICK(__builtin_sqrt, __builtin_sqrtf)(x[i]);
    return x;
#endif
}
GX_SCALAR(sqrt)

/* Reductions of the lanes: always lane i with lane i + half, then the halves again. */
#define GX_REDUCE(name, combine)                                                                                       \
    GX_INLINE gx_t gx_##name(gx_v v) {                                                                                 \
        gx_t lane[GX_W];                                                                                               \
        gx_store(lane, v);                                                                                             \
        GX_UNROLL                                                                                                      \
        for (int half = GX_W / 2; half > 0; half /= 2) {                                                               \
            GX_UNROLL                                                                                                  \
            for (int i = 0; i < half; i++) {                                                                           \
                gx_t a = lane[i], b = lane[i + half];                                                                  \
                lane[i] = combine;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        return lane[0];                                                                                                \
    }
GX_REDUCE(hsum, a + b)
GX_REDUCE(hprod, a * b)
GX_REDUCE(hmax, a > b || a != a ? a : b)
GX_REDUCE(hmin, a < b || a != a ? a : b)

/* ---- parts of the functions ---- */

/* c[0] + c[1] x + ... + c[n-1] x^(n-1), by Horner's rule. */
GX_INLINE gx_v gx_poly(gx_v x, const gx_t *c, int n) {
    gx_v y = gx_all(c[n - 1]);
    GX_UNROLL
    for (int i = n - 2; i >= 0; i--) y = gx_fma(y, x, gx_all(c[i]));
    return y;
}

/* The same in two chains of half the length, for even and odd powers. */
GX_INLINE gx_v gx_poly2(gx_v x, const gx_t *c, int n) {
    gx_v z = x * x, a = gx_all(c[n - 1]), b = gx_all(c[n - 2]);
    GX_UNROLL
    for (int i = n - 3; i >= 0; i -= 2) {
        a = gx_fma(a, z, gx_all(c[i]));
        if (i > 0) b = gx_fma(b, z, gx_all(c[i - 1]));
    }
    return n % 2 ? gx_fma(b, x, a) : gx_fma(a, x, b);
}
#define GX_POLY(x, c) gx_poly(x, c, (int)(sizeof(c) / sizeof(*c)))
#define GX_POLY2(x, c) gx_poly2(x, c, (int)(sizeof(c) / sizeof(*c)))

/* The value of x as rounded: stops the compiler from fusing the product that it came from into a later sum. A product
 * that feeds a sum is either wrapped in this or part of a gx_fma, so that the bits of a function depend neither on
 * what surrounds it nor on -ffp-contract.
 */
GX_INLINE gx_v gx_rounded(gx_v x) {
#if GX_BYTES == 64
    __asm__("" : "+v"(x));
#elif defined(__SSE2__)
    __asm__("" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#else
    __asm__("" : "+m"(x));
#endif
    return x;
}

/* A number as the unevaluated sum of two. */
typedef struct {
    gx_v hi, lo;
} gx_pair;

/* a + b exactly. */
GX_INLINE gx_pair gx_two_sum(gx_v a, gx_v b) {
    gx_v s = a + b, t = s - a;
    return (gx_pair){s, (a - (s - t)) + (b - t)};
}

/* a + b exactly, where a is 0 or has no smaller exponent than b. */
GX_INLINE gx_pair gx_fast_sum(gx_v a, gx_v b) {
    gx_v s = a + b;
    return (gx_pair){s, b - (s - a)};
}

/* a b exactly; without fused arithmetic up to 1/2 ulp of the lower part. */
GX_INLINE gx_pair gx_two_product(gx_v a, gx_v b) {
    gx_v p = gx_rounded(a * b);
#if defined(GX_FUSED)
    return (gx_pair){p, gx_fma(a, b, -p)};
#else
    gx_i upper = gx_all_i(-((gx_int)1 << GX_PICK(27, 12)));
    gx_v c = (gx_v)((gx_i)a & upper), d = (gx_v)((gx_i)b & upper);
    gx_v e = a - c, f = b - d;
    return (gx_pair){p, ((c * d - p) + c * f + e * d) + e * f};
#endif
}

/* c - a b, rounded once, where c and a b nearly cancel. */
GX_INLINE gx_v gx_remainder(gx_v c, gx_v a, gx_v b) {
#if defined(GX_FUSED)
    return gx_fnma(a, b, c);
#else
    gx_pair p = gx_two_product(a, b);
    return (c - p.hi) - p.lo;
#endif
}

/* 1 / b to half the digits or better, where b is neither tiny nor huge nor infinite. A quotient that is computed with
 * it and then corrected by its remainder has all digits.
 */
GX_INLINE gx_v gx_reciprocal(gx_v b) {
#if GX_BYTES == 64 && defined(GX_F64)
    gx_v y = GX_X(rcp14, rcp14p)(b GX_ALL(b));
    return gx_fma(y, gx_fnma(b, y, gx_all(1)), y);
#elif GX_BYTES == 64
    return GX_X(rcp14, rcp14p)(b GX_ALL(b));
#else
    return gx_all(1) / b;
#endif
}

/* a / b to 0.6 ulp, for such b. */
GX_INLINE gx_v gx_quotient(gx_v a, gx_v b) {
#if GX_BYTES == 64
    gx_v y = gx_reciprocal(b), q = a * y;
    return gx_fma(gx_fnma(b, q, a), y, q);
#else
    return a / b;
#endif
}

/* The same of two sums. */
GX_INLINE gx_v gx_quotient_of_pairs(gx_pair a, gx_pair b) {
    gx_v y = gx_reciprocal(b.hi), q = a.hi * y;
    return gx_fma(gx_fnma(q, b.lo, gx_remainder(a.hi, q, b.hi) + a.lo), y, q);
}

/* log 2 in two parts, the upper one with so few bits that its product with an exponent is exact. */
#define GX_LOG2_E GX_PICK(1.4426950408889634, 1.442695f)
#define GX_LN2_HI GX_PICK(0.693147180559663, 0.69314575f)
#define GX_LN2_LO GX_PICK(2.8235290563031577e-13, 1.4286068e-06f)

/* Adding GX_SHIFTER rounds a number of modest size to an integer, and leaves that, plus the bias, in the lowest bits.
 */
#define GX_SHIFTER ((gx_t)GX_PICK(0x1.8p52 + 1023, 0x1.8p23f + 127))

/* The integer nearest to c x, for results below 2^51 (f64) or 2^22 (f32). */
GX_INLINE gx_v gx_nearest(gx_v x, gx_t c) {
    return gx_fma(x, gx_all(c), gx_all(GX_SHIFTER)) - gx_all(GX_SHIFTER);
}

/* 2^k for an integer k in the range of exponents. */
GX_INLINE gx_v gx_exp2_of_integer(gx_v k) { return (gx_v)((gx_u)(k + gx_all(GX_SHIFTER)) << GX_MANTISSA); }

/* x 2^k for an integer k that may carry x out of the range of exponents. */
GX_INLINE gx_v gx_scale(gx_v x, gx_v k) {
#if GX_BYTES == 64
    return GX_X(scalef, scalefp)(x, k GX_ALL_ROUNDED(x));
#else
    gx_v half = gx_nearest(k, 0.5);
    return gx_rounded(x * gx_exp2_of_integer(half) * gx_exp2_of_integer(k - half));
#endif
}

/* m in 0.75 .. 1.5 and k with x = 2^k m, for positive finite x. */
GX_INLINE gx_v gx_split(gx_v x, gx_v *k) {
#if GX_BYTES == 64
#if defined(__clang__)
    gx_v m = GX_X(getmant, )(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
#else
    gx_v m = GX_X(, getmantp)(x, 3 GX_ALL_ROUNDED(x));
#endif
    *k = GX_X(getexp, getexpp)(x GX_ALL_ROUNDED(x)) - GX_X(getexp, getexpp)(m GX_ALL_ROUNDED(m));
    return m;
#else
    gx_i tiny = x < gx_all(GX_PICK(0x1p-1022, 0x1p-126f));
    gx_u bits = (gx_u)gx_select(tiny, x * gx_all(GX_PICK(0x1p54, 0x1p25f)), x);
    gx_u above = bits - (gx_u)gx_all(0.75) + (gx_u)gx_all_i((gx_int)(GX_BIAS + 1) << GX_MANTISSA);
    gx_v biased = (gx_v)((above >> GX_MANTISSA) | (gx_u)gx_all(GX_PICK(0x1p52, 0x1p23f)));
    *k = biased - gx_select(tiny, gx_all(GX_PICK(0x1p52 + 1024 + 54, 0x1p23f + 128 + 25)),
                            gx_all(GX_PICK(0x1p52 + 1024, 0x1p23f + 128)));
    gx_u exponent = (above >> GX_MANTISSA) << GX_MANTISSA;
    return (gx_v)(bits - exponent + (gx_u)gx_all_i((gx_int)(GX_BIAS + 1) << GX_MANTISSA));
#endif
}
