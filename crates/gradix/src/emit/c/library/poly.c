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
