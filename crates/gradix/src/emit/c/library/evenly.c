/* How many of n things to take at a time, at most a few, so that it is about as many each time. */
static inline int64_t gx_evenly(int64_t n, int64_t few)
{
    const int64_t times = (n + few - 1) / few;
    return times > 0 ? (n + times - 1) / times : 1;
}
