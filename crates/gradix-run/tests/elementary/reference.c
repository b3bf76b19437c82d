/* `reference NAME INPUT OUTPUT`: the values of a function in a wider type, each as two doubles whose sum it is. With
 * QUAD the type is __float128 of libquadmath, and otherwise long double, if that has 64 bits.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(QUAD)
#include <quadmath.h>
typedef __float128 wide;
#define W(name) name##q
#define PI M_PIq
#elif LDBL_MANT_DIG >= 64
typedef long double wide;
#define W(name) name##l
#define PI 3.14159265358979323846264338327950288L
#else
#error "no wider type"
#endif

static wide sigmoid(wide x) { return x < 0 ? W(exp)(x) / (1 + W(exp)(x)) : 1 / (1 + W(exp)(-x)); }
static wide softplus(wide x) { return x > 0 ? x + W(log1p)(W(exp)(-x)) : W(log1p)(W(exp)(x)); }
static wide max(wide x, wide y) { return x > y || x != x ? x : y; }
static wide min(wide x, wide y) { return x < y || x != x ? x : y; }
static wide relu(wide x) { return max(x, 0); }
static wide sign(wide x) { return x > 0 ? 1 : x < 0 ? -1 : x + 0; }

/* B_2k. */
static const wide bernoulli[] = {(wide)1 / 6,      -(wide)1 / 30,        (wide)1 / 42,         -(wide)1 / 30,
                                 (wide)5 / 66,     -(wide)691 / 2730,    (wide)7 / 6,          -(wide)3617 / 510,
                                 (wide)43867 / 798, -(wide)174611 / 330, (wide)854513 / 138,   -(wide)236364091 / 2730,
                                 (wide)8553103 / 6};

static wide digamma(wide x) {
    if (x == 0) return -1 / x;
    if (x < 0) {
        wide offset = x - W(round)(x);
        return offset == 0 ? (wide)NAN : digamma(1 - x) - PI / W(tan)(PI * offset);
    }
    wide shift = 0, series = 0;
    for (; x < 40; x += 1) shift += 1 / x;
    for (int k = 13; k > 0; k--) series = (series + bernoulli[k - 1] / (2 * k)) / (x * x);
    return W(log)(x) - 1 / (2 * x) - series - shift;
}

static wide trigamma(wide x) {
    if (x <= 0) {
        wide ratio = PI / W(sin)(PI * (x - W(round)(x)));
        return ratio * ratio - trigamma(1 - x);
    }
    wide shift = 0, series = 0;
    for (; x < 40; x += 1) shift += 1 / (x * x);
    for (int k = 13; k > 0; k--) series = (series + bernoulli[k - 1]) / (x * x);
    return shift + (1 + 1 / (2 * x) + series) / x;
}

#define UNARY(F, G)                                                                                                    \
    F(exp) F(expm1) F(log) F(log1p) F(log2) F(log10) F(sqrt) F(cbrt) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan)      \
    F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) F(erf) F(erfc) F(floor) F(ceil) F(round) F(lgamma)              \
    G(sigmoid, sigmoid) G(softplus, softplus) G(relu, relu) G(sign, sign) G(abs, W(fabs))                              \
    G(digamma, digamma) G(trigamma, trigamma)
#define BINARY(F, G) F(pow) F(atan2) F(hypot) G(min, min) G(max, max)

#define LIBRARY(name) {#name, W(name)},
#define OWN(name, function) {#name, function},
static const struct {
    const char *name;
    wide (*function)(wide);
} unary[] = {UNARY(LIBRARY, OWN)};
static const struct {
    const char *name;
    wide (*function)(wide, wide);
} binary[] = {BINARY(LIBRARY, OWN)};

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    wide (*one)(wide) = NULL, (*two)(wide, wide) = NULL;
    for (size_t f = 0; f < sizeof unary / sizeof *unary; f++)
        if (!strcmp(unary[f].name, argv[1])) one = unary[f].function;
    for (size_t f = 0; f < sizeof binary / sizeof *binary; f++)
        if (!strcmp(binary[f].name, argv[1])) two = binary[f].function;
    FILE *input = fopen(argv[2], "rb"), *output = fopen(argv[3], "wb");
    if (!input || !output || !(one || two)) return 2;
    fseek(input, 0, SEEK_END);
    size_t bytes = (size_t)ftell(input), n = bytes / sizeof(double) / (two ? 2 : 1);
    rewind(input);
    double *x = malloc(bytes);
    if (!x || fread(x, 1, bytes, input) != bytes) return 2;
    for (size_t i = 0; i < n; i++) {
        wide value = two ? two(x[i], x[n + i]) : one(x[i]);
        double parts[2] = {(double)value, 0};
        if (isfinite(parts[0])) parts[1] = (double)(value - parts[0]);
        if (fwrite(parts, sizeof *parts, 2, output) != 2) return 2;
    }
    return fclose(output) ? 2 : 0;
}
