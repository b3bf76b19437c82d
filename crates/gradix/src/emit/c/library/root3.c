/* x^1.5, within two roundings. */
GX_INLINE gx_v gx_root3(gx_v x) { return gx_root(x) * gx_abs(x); }
GX_SCALAR(root3)
