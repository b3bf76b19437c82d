/* x^0.5, as a power: 0 for -0 and infinite for minus infinity. */
GX_INLINE gx_v gx_root(gx_v x) {
    return gx_select((gx_i)(x == gx_all(-(gx_t)__builtin_inf())), gx_all((gx_t)__builtin_inf()), gx_sqrt(x + gx_all(0)));
}
GX_SCALAR(root)
