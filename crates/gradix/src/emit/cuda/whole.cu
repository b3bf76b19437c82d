#define GX_FUNCTION static __device__ __forceinline__
#define GX_INF ((gx_t)__longlong_as_double(0x7ff0000000000000LL))
#define GX_NAN ((gx_t)__longlong_as_double(0x7ff8000000000000LL))
#define GX_UNROLL _Pragma("unroll")
/* As vectors are loaded. */
#define GX_ALIGNED __align__(16)
#ifndef INT64_C
#define INT64_C(number) number##LL
#endif

#ifdef GX_NARROW
typedef int gx_whole;
#else
typedef long long gx_whole;
#endif

/* The compilers of CUDA 12.8 to 13.3 lose the sign in max(max(a, -b), c) of 32 bits, which GPUs of compute capability 9.0 and 10.0
 * have an instruction for. They make none of comparisons that they can't see through, nor of the ends of loops. */
#if defined(GX_NARROW) && defined(__CUDA_ARCH__)
#define GX_CHOOSE(name, how)                                                                               \
    GX_FUNCTION gx_whole name(gx_whole a, gx_whole b) {                                                    \
        gx_whole chosen;                                                                                   \
        asm("{ .reg .pred p; setp." how ".s32 p, %1, %2; selp.b32 %0, %1, %2, p; }" : "=r"(chosen) : "r"(a), "r"(b)); \
        return chosen;                                                                                     \
    }
GX_CHOOSE(gx_larger, "gt")
GX_CHOOSE(gx_smaller, "lt")
#else
GX_FUNCTION gx_whole gx_larger(gx_whole a, gx_whole b) { return a > b ? a : b; }

GX_FUNCTION gx_whole gx_smaller(gx_whole a, gx_whole b) { return a < b ? a : b; }
#endif

/* Where an element lies whose neighbours are some elements apart. */
GX_FUNCTION gx_whole gx_interleaved(gx_whole i, int apart, int beside) {
    return i % apart * beside + i / apart % beside + i / (apart * beside) * (apart * beside);
}

/* Rounds down; c is positive. */
GX_FUNCTION gx_whole gx_floor_div(gx_whole a, gx_whole c) { return a / c - (a % c < 0); }
