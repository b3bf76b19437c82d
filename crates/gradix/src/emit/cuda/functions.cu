/* The smaller: y where they are equal, and NaN where either is. */
GX_FUNCTION gx_t gx_min(gx_t x, gx_t y) { return x < y || x != x ? x : y; }

/* The larger: y where they are equal, and NaN where either is. */
GX_FUNCTION gx_t gx_max(gx_t x, gx_t y) { return x > y || x != x ? x : y; }

GX_FUNCTION gx_t gx_abs(gx_t x) { return fabs(x); }

/* max(x, 0); NaN stays NaN. */
GX_FUNCTION gx_t gx_relu(gx_t x) { return x > 0 || x != x ? x : (gx_t)0; }

/* -1, 0 or 1; NaN at NaN. */
GX_FUNCTION gx_t gx_sign(gx_t x) { return x > 0 ? (gx_t)1 : x < 0 ? (gx_t)-1 : x + (gx_t)0; }

GX_FUNCTION gx_t gx_sigmoid(gx_t x) {
    const gx_t e = exp(-fabs(x));
    return (x < 0 ? e : (gx_t)1) / ((gx_t)1 + e);
}

GX_FUNCTION gx_t gx_softplus(gx_t x) { return (x > 0 ? x : x < 0 ? (gx_t)0 : x) + log1p(exp(-fabs(x))); }

/* x^0.5, as a power: 0 for -0 and infinite for minus infinity. */
GX_FUNCTION gx_t gx_root(gx_t x) { return x == -GX_INF ? GX_INF : sqrt(x + (gx_t)0); }

/* x^1.5, within two roundings. */
GX_FUNCTION gx_t gx_root3(gx_t x) { return (x == -GX_INF ? GX_INF : sqrt(x + (gx_t)0)) * fabs(x); }

/* The derivative of lgamma, in double precision: up to 10 by the recurrence, then the asymptotic series; below 0 by
 * reflection. */
static __device__ gx_t gx_digamma(gx_t argument) {
    double x = argument, sum = 0;
    if (x <= 0 && x == floor(x)) return x == 0 ? (gx_t)(-1 / x) : GX_NAN;
    if (x < 0) {
        const double r = x - round(x);
        sum = -3.141592653589793 * cospi(r) / sinpi(r);
        x = 1 - x;
    }
    while (x < 10) sum -= 1 / x, x += 1;
    const double w = 1 / (x * x);
    const double tail = w * (1. / 12 - w * (1. / 120 - w * (1. / 252 - w * (1. / 240 - w * (1. / 132 - w * (691. / 32760 - w / 12))))));
    return (gx_t)(sum + (isinf(x) ? x : log(x) - 0.5 / x - tail));
}

/* The derivative of digamma, in the same way. */
static __device__ gx_t gx_trigamma(gx_t argument) {
    double x = argument, sum = 0, sign = 1;
    if (x <= 0 && x == floor(x)) return GX_INF;
    if (x < 0) {
        const double s = sinpi(x - round(x));
        sum = 9.869604401089358 / (s * s);
        sign = -1;
        x = 1 - x;
    }
    double own = 0;
    while (x < 10) own += 1 / (x * x), x += 1;
    const double w = 1 / (x * x);
    own += 1 / x + 0.5 * w + w / x * (1. / 6 - w * (1. / 30 - w * (1. / 42 - w * (1. / 30 - w * (5. / 66 - w * (691. / 2730 - w * 7. / 6))))));
    return (gx_t)(sum + sign * own);
}
