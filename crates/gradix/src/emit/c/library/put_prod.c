#define GX_PRODUCT(a, b) ((a) * (b))
GX_PUT(prod, GX_PRODUCT, GX_PRODUCT)
