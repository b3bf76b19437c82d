GX_PUT(max, gx_max, gx_max_1)
