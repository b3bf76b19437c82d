#define GX_FUNCTION static __device__ __forceinline__
#define GX_INF ((gx_t)__longlong_as_double(0x7ff0000000000000LL))
#define GX_NAN ((gx_t)__longlong_as_double(0x7ff8000000000000LL))
#ifndef INT64_C
#define INT64_C(number) number##LL
#endif

#ifdef GX_NARROW
typedef int gx_whole;
#else
typedef long long gx_whole;
#endif

GX_FUNCTION gx_whole gx_larger(gx_whole a, gx_whole b) { return a > b ? a : b; }

GX_FUNCTION gx_whole gx_smaller(gx_whole a, gx_whole b) { return a < b ? a : b; }

/* Rounds down; c is positive. */
GX_FUNCTION gx_whole gx_floor_div(gx_whole a, gx_whole c) { return a / c - (a % c < 0); }
