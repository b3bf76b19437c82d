GX_PUT(min, gx_min, gx_min_1)
