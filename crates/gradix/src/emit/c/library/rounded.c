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
