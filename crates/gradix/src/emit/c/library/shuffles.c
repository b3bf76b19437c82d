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
