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
#define GX_NOINLINE __attribute__((noinline))
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

GX_INLINE gx_v gx_all(gx_t x) { return x - (gx_v){0}; }

GX_INLINE gx_i gx_all_i(gx_int x) { return x - (gx_i){0}; }

/* The scalar version of a function: lane 0, so the same bits. */
#define GX_SCALAR(name)                                                                                                \
    GX_INLINE gx_t gx_##name##_1(gx_t x) { return gx_##name(gx_all(x))[0]; }
#define GX_SCALAR2(name)                                                                                               \
    GX_INLINE gx_t gx_##name##_1(gx_t x, gx_t y) { return gx_##name(gx_all(x), gx_all(y))[0]; }

/* A mask as GCC's functions want it: of long long, which int64_t may not be. */
typedef GX_PICK(long long, int) gx_lanes __attribute__((vector_size(GX_BYTES)));
#define GX_LANES(mask) ((gx_lanes)(mask))
