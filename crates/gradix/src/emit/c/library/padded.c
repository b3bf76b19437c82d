/* So many elements that they fill whole 64 bytes. */
static inline int64_t gx_padded(int64_t n)
{
    const int64_t line = 64 / (int64_t)sizeof(gx_t);
    return (n + line - 1) / line * line;
}
