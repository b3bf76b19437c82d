/* max(x, 0); NaN stays NaN. The sum turns -0 into 0. */
GX_INLINE gx_v gx_relu(gx_v x) { return gx_at_least(x, 0) + gx_all(0); }
GX_SCALAR(relu)
