#define GX_SUM(a, b) ((a) + (b))
GX_PUT(sum, GX_SUM, GX_SUM)
