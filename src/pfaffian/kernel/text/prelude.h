/* Operations on lanes. V is W doubles and I is W 64-bit integers; a mask is an I of all ones or all zeros in each lane.
   The same text serves W = 1 (plain double), 4 and 8. Every macro is exact or correctly rounded. */
#ifndef __CUDACC__ /* for CUDA, cuda.h has these definitions */
#include <stdint.h>
#define NOINLINE __attribute__((noinline))
/* In a text of several units, a stage may be in another unit than the loop that calls it. */
#ifdef UNIT
#define STAGE NOINLINE __attribute__((visibility("hidden")))
#else
#define STAGE static NOINLINE
#endif
#define INLINE inline __attribute__((always_inline))
#endif

#if W == 1
typedef double V;
typedef int64_t I;
#define K(c) (c)
#define KI(c) ((I)(c))
#define MASK(c) (-(I)(c))
static inline I BITS(V x) { I i; __builtin_memcpy(&i, &x, sizeof i); return i; }
static inline V REAL(I i) { V x; __builtin_memcpy(&x, &i, sizeof x); return x; }
#else
typedef double V __attribute__((vector_size(8 * W)));
typedef int64_t I __attribute__((vector_size(8 * W)));
#if W == 4
#define K(c) ((V){c, c, c, c})
#define KI(c) ((I){c, c, c, c})
#else
#define K(c) ((V){c, c, c, c, c, c, c, c})
#define KI(c) ((I){c, c, c, c, c, c, c, c})
#endif
#define MASK(c) ((I)(c))
#define BITS(x) ((I)(x))
#define REAL(i) ((V)(i))
#endif

/* A constant, read from a table, since another mechanism with the same structure has other numbers. */
static inline V all_lanes(double x) { return K(x); }
#define C(i) all_lanes(c[i])

#define SHR(i, n) ((i) >> (n))
#define INFINITE __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")
#define LT(a, b) MASK((a) < (b))
#define LE(a, b) MASK((a) <= (b))
#define EQ(a, b) MASK((a) == (b))
#define NE(a, b) MASK((a) != (b))
static inline V SEL(I m, V a, V b) { return REAL((m & BITS(a)) | (~m & BITS(b))); }
static inline V TRUTH(I m) { return REAL(m & BITS(K(1.0))); }
static inline V FABS(V a) { return REAL(BITS(a) & KI(INT64_MAX)); }
static inline V COPYSIGN(V a, V b) { return REAL((BITS(a) & KI(INT64_MAX)) | (BITS(b) & KI(INT64_MIN))); }

/* Applies a function to one lane after another, where the processor has no instruction for all lanes. */
#define EACH(name, call)                                                             \
  static inline V name(V a) {                                                        \
    double x[W];                                                                     \
    __builtin_memcpy(x, &a, sizeof a);                                               \
    for (int i = 0; i < W; i++) x[i] = call(x[i]);                                   \
    __builtin_memcpy(&a, x, sizeof a);                                               \
    return a;                                                                        \
  }

/* Instructions for whole vectors of 64 or 32 bytes, by name: to compile the header of their intrinsics takes 0.13 s. */
#define INSTRUCTION(name, type, text, kind)                                          \
  static INLINE type name(type a) {                                                  \
    type b;                                                                          \
    __asm__(text " %1, %0" : "=" kind(b) : kind(a));                                 \
    return b;                                                                        \
  }
#if W == 8 && defined(__AVX512F__)
INSTRUCTION(SQRT, V, "vsqrtpd", "v")
INSTRUCTION(FLOOR, V, "vrndscalepd $9,", "v")
INSTRUCTION(CEIL, V, "vrndscalepd $10,", "v")
static INLINE int ANY(I m) {
  uint8_t lanes;
  __asm__("vptestmq %1, %1, %0" : "=Yk"(lanes) : "v"(m));
  return lanes != 0;
}
#else
#if W == 4 && defined(__AVX__)
INSTRUCTION(SQRT, V, "vsqrtpd", "x")
INSTRUCTION(FLOOR, V, "vroundpd $9,", "x")
INSTRUCTION(CEIL, V, "vroundpd $10,", "x")
#elif W == 8 && defined(__AVX__)
typedef double H __attribute__((vector_size(32)));
#define HALVES(name, text)                                                           \
  INSTRUCTION(HALF_##name, H, text, "x")                                             \
  static inline V name(V a) {                                                        \
    H h[2];                                                                          \
    __builtin_memcpy(h, &a, sizeof a);                                               \
    h[0] = HALF_##name(h[0]), h[1] = HALF_##name(h[1]);                              \
    __builtin_memcpy(&a, h, sizeof a);                                               \
    return a;                                                                        \
  }
HALVES(SQRT, "vsqrtpd")
HALVES(FLOOR, "vroundpd $9,")
HALVES(CEIL, "vroundpd $10,")
#else
EACH(SQRT, __builtin_sqrt)
EACH(FLOOR, __builtin_floor)
EACH(CEIL, __builtin_ceil)
#endif
static inline int ANY(I m) {
  int64_t x[W], any = 0;
  __builtin_memcpy(x, &m, sizeof m);
  for (int i = 0; i < W; i++) any |= x[i];
  return any != 0;
}
#endif

/* fmod is exact, so every C library gives the same bits. */
static inline V FMOD(V a, V b) {
  double x[W], y[W];
  __builtin_memcpy(x, &a, sizeof a);
  __builtin_memcpy(y, &b, sizeof b);
  for (int i = 0; i < W; i++) x[i] = __builtin_fmod(x[i], y[i]);
  __builtin_memcpy(&a, x, sizeof a);
  return a;
}

/* Whether the first n vectors are the same, to the bit. */
static inline int pf_same(const V *x, const V *y, int n) {
  int j = 0;
  while (j < n && !ANY(NE(BITS(x[j]), BITS(y[j])))) j++;
  return j == n;
}
static inline void pf_copy(V *restrict x, const V *restrict y, int n) {
  for (int j = 0; j < n; j++) x[j] = y[j];
}
