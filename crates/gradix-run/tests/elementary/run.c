/* Appended to the elementary functions: `run NAME INPUT OUTPUT` applies one of them to the numbers of a file, first all
 * of the first argument, then all of the second, and fails where the scalar version has other bits.
 * UNARY(F) and BINARY(F) are the lists of names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A vector from n numbers, or the first of more. */
static gx_v part(const gx_t *p, int64_t n) { return n < GX_W ? gx_load_n(p, n) : gx_load(p); }

#define APPLY(name, vector, scalar)                                                                                    \
    static void apply_##name(const gx_t *x, const gx_t *y, gx_t *out, int64_t n) {                                     \
        (void)y;                                                                                                       \
        for (int64_t i = 0; i < n; i += GX_W) {                                                                        \
            gx_v value = vector;                                                                                       \
            if (n - i < GX_W)                                                                                          \
                gx_store_n(out + i, value, n - i);                                                                     \
            else                                                                                                       \
                gx_store(out + i, value);                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static gx_t scalar_##name(gx_t x, gx_t y) {                                                                        \
        (void)y;                                                                                                       \
        return scalar;                                                                                                 \
    }
#define APPLY1(name) APPLY(name, gx_##name(part(x + i, n - i)), gx_##name##_1(x))
#define APPLY2(name) APPLY(name, gx_##name(part(x + i, n - i), part(y + i, n - i)), gx_##name##_1(x, y))
UNARY(APPLY1)
BINARY(APPLY2)

#define ROW1(name) {#name, 1, apply_##name, scalar_##name},
#define ROW2(name) {#name, 2, apply_##name, scalar_##name},
static const struct {
    const char *name;
    int arity;
    void (*apply)(const gx_t *x, const gx_t *y, gx_t *out, int64_t n);
    gx_t (*scalar)(gx_t x, gx_t y);
} functions[] = {UNARY(ROW1) BINARY(ROW2)};

int main(int argc, char **argv) {
    size_t f = 0;
    while (argc == 4 && f < sizeof functions / sizeof *functions && strcmp(functions[f].name, argv[1])) f++;
    FILE *input = argc == 4 ? fopen(argv[2], "rb") : NULL;
    if (!input || f == sizeof functions / sizeof *functions) return 2;
    fseek(input, 0, SEEK_END);
    size_t bytes = (size_t)ftell(input), n = bytes / sizeof(gx_t) / (size_t)functions[f].arity;
    rewind(input);
    gx_t *x = malloc(bytes), *out = malloc(n * sizeof(gx_t)), *y = functions[f].arity == 2 ? x + n : x;
    if (!x || !out || fread(x, 1, bytes, input) != bytes) return 2;
    functions[f].apply(x, y, out, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        gx_t one = functions[f].scalar(x[i], y[i]);
        if (memcmp(&one, out + i, sizeof one) && !(one != one && out[i] != out[i])) {
            fprintf(stderr, "%s(%a, %a) is %a alone, %a in a vector\n", argv[1], x[i], y[i], one, out[i]);
            return 1;
        }
    }
    FILE *output = fopen(argv[3], "wb");
    return !output || fwrite(out, sizeof(gx_t), n, output) != n || fclose(output) ? 2 : 0;
}
