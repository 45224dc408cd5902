/* Copies 8 runs by 8 elements between rows of the caller, one for each run, and vectors, one for each element. */
#if W == 8 && (defined(__clang__) || __GNUC__ >= 12)
#define SQUARE 8
#define PAIRS(a, b, even, odd)                                                       \
  even = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);                   \
  odd = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define FOURS(a, b, even, odd)                                                       \
  even = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);                    \
  odd = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define EIGHTS(a, b, low, high)                                                      \
  low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);                     \
  high = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

static inline void load_row(V *to, const double *from) { __builtin_memcpy(to, from, sizeof(V)); }
static inline void store_row(double *to, V from) { __builtin_memcpy(to, &from, sizeof(V)); }

/* Transposes 8 rows: v[j] becomes element j of all of them. */
static inline void transpose(V v[8]) {
  V a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
  PAIRS(v[0], v[1], a0, a1);
  PAIRS(v[2], v[3], a2, a3);
  PAIRS(v[4], v[5], a4, a5);
  PAIRS(v[6], v[7], a6, a7);
  FOURS(a0, a2, b0, b2);
  FOURS(a1, a3, b1, b3);
  FOURS(a4, a6, b4, b6);
  FOURS(a5, a7, b5, b7);
  EIGHTS(b0, b4, v[0], v[4]);
  EIGHTS(b1, b5, v[1], v[5]);
  EIGHTS(b2, b6, v[2], v[6]);
  EIGHTS(b3, b7, v[3], v[7]);
}

static inline void read_square(const double *d, int64_t run, V *to) {
  V v[8];
  load_row(v, d), load_row(v + 1, d + run), load_row(v + 2, d + 2 * run), load_row(v + 3, d + 3 * run);
  load_row(v + 4, d + 4 * run), load_row(v + 5, d + 5 * run), load_row(v + 6, d + 6 * run), load_row(v + 7, d + 7 * run);
  transpose(v);
  __builtin_memcpy(to, v, sizeof v);
}

static inline void write_square(double *d, int64_t run, const V *from) {
  V v[8];
  __builtin_memcpy(v, from, sizeof v);
  transpose(v);
  store_row(d, v[0]), store_row(d + run, v[1]), store_row(d + 2 * run, v[2]), store_row(d + 3 * run, v[3]);
  store_row(d + 4 * run, v[4]), store_row(d + 5 * run, v[5]), store_row(d + 6 * run, v[6]), store_row(d + 7 * run, v[7]);
}
#endif
