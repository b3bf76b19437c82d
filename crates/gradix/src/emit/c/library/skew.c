/* By how much the elements from p on are off the boundaries of vectors, where there are so many that it matters. */
static inline int64_t gx_skew(const gx_t *p, int64_t count)
{
    return count < 16*GX_W ? 0 : (int64_t)((uintptr_t)p / sizeof(gx_t) % GX_W);
}
