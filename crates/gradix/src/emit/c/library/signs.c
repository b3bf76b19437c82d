GX_INLINE gx_v gx_abs(gx_v x) { return (gx_v)((gx_i)x & ~gx_all_i(GX_SIGN)); }
GX_SCALAR(abs)

GX_INLINE gx_v gx_negative_abs(gx_v x) { return (gx_v)((gx_i)x | gx_all_i(GX_SIGN)); }

/* x with the sign of s, for x >= 0; and x times the sign of s. */
GX_INLINE gx_v gx_signed(gx_v x, gx_v s) { return (gx_v)((gx_i)x | ((gx_i)s & gx_all_i(GX_SIGN))); }

GX_INLINE gx_v gx_flip(gx_v x, gx_v s) { return (gx_v)((gx_i)x ^ ((gx_i)s & gx_all_i(GX_SIGN))); }
