typedef $real V$s;
typedef $word I$s;

#define K$s(c) $literal

#define KI$s(c) ((I$s)(c))

SPARE static inline I$s BITS$s(V$s x) { union { V$s real; I$s bits; } u; u.real = x; return u.bits; }

SPARE static inline V$s REAL$s(I$s i) { union { V$s real; I$s bits; } u; u.bits = i; return u.real; }

#define SIGN$s ((I$s)1 << ($width - 1))

#define MASK$s(c) ((I$s)0 - (I$s)(c))

#define LT$s(a, b) MASK$s((a) < (b))

#define LE$s(a, b) MASK$s((a) <= (b))

#define EQ$s(a, b) MASK$s((a) == (b))

#define NE$s(a, b) MASK$s((a) != (b))

#define ANY$s(m) ((m) != 0)

#define INFINITE$s REAL$s((I$s)$exponents << $fraction)

#define NOT_A_NUMBER$s REAL$s(((I$s)$exponents << 1 | 1) << ($fraction - 1))

static inline I$s SHR$s(I$s i, int n) { return i >> n | (i & SIGN$s ? ~(~(I$s)0 >> n) : 0); }

static inline V$s SEL$s(I$s m, V$s a, V$s b) { return REAL$s((m & BITS$s(a)) | (~m & BITS$s(b))); }

static inline V$s TRUTH$s(I$s m) { return REAL$s(m & BITS$s(K$s(1.0))); }

static inline V$s FABS$s(V$s a) { return REAL$s(BITS$s(a) & ~SIGN$s); }

static inline V$s COPYSIGN$s(V$s a, V$s b) { return REAL$s((BITS$s(a) & ~SIGN$s) | (BITS$s(b) & SIGN$s)); }

static inline V$s FLOOR$s(V$s a) {
  if (!(FABS$s(a) < K$s($whole))) return a;
  const V$s cut = (V$s)($signed)a;
  return COPYSIGN$s(cut > a ? cut - 1 : cut, a);
}

static inline V$s CEIL$s(V$s a) { return -FLOOR$s(-a); }

/* The mantissa of a positive number, with its leading bit in place, and the exponent. */
SPARE static inline I$s UNPACK$s(I$s bits, int *exponent) {
  I$s m = bits & (((I$s)1 << $fraction) - 1);
  *exponent = (int)(bits >> $fraction);
  if (*exponent != 0) return m | (I$s)1 << $fraction;
  for (*exponent = 1; m >> $fraction == 0; m <<= 1) --*exponent;
  return m;
}

/* The remainder, which is exact, by long division. */
static V$s FMOD$s(V$s x, V$s y) {
  const I$s a = BITS$s(x) & ~SIGN$s, b = BITS$s(y) & ~SIGN$s, sign = BITS$s(x) & SIGN$s, infinite = (I$s)$exponents << $fraction;
  if (b == 0 || a >= infinite || b > infinite) return (x * y) / (x * y);
  if (a < b) return x;
  int p, q;
  I$s m = UNPACK$s(a, &p);
  const I$s n = UNPACK$s(b, &q);
  for (; p > q; p--) m = (m >= n ? m - n : m) << 1;
  m = m >= n ? m - n : m;
  if (m == 0) return REAL$s(sign);
  for (; m >> $fraction == 0; p--) m <<= 1;
  if (p < 1) return REAL$s(sign | m >> (1 - p));
  return REAL$s(sign | ((m & (((I$s)1 << $fraction) - 1)) | (I$s)p << $fraction));
}

/* The square root, rounded to the nearest: by the processor's instruction if there is one (unless PLAIN_SQRT), else by
   Newton's method and a check in integers. */
#if defined(__SSE2__) && !defined(PLAIN_SQRT)
static inline V$s SQRT$s(V$s a) { return $sse; }
#elif defined(__GNUC__) && defined(__aarch64__) && !defined(PLAIN_SQRT)
static inline V$s SQRT$s(V$s a) { V$s r; __asm__("$aarch64" : "=w"(r) : "w"(a)); return r; }
#elif defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & $armbit) && !defined(PLAIN_SQRT)
static inline V$s SQRT$s(V$s a) { V$s r; __asm__("$arm" : "=$armreg"(r) : "$armreg"(a)); return r; }
#else
static V$s SQRT$s(V$s a) {
  if (a < 0) return NOT_A_NUMBER$s;
  if (!(a > 0) || BITS$s(a) >= (I$s)$exponents << $fraction) return a;
  int e;
  I$s m = UNPACK$s(BITS$s(a), &e);
  /* sqrt a = sqrt(m 2^(odd + fraction)) 2^(half - fraction), the root between 2^fraction and 2^(fraction + 1). */
  const int odd = (e - $bias) % 2 != 0, half = (e - odd - $bias) / 2;
  V$s y = REAL$s((m & (((I$s)1 << $fraction) - 1)) | (I$s)($bias + odd) << $fraction);
  const V$s x = y;
  y = K$s(0.5) * (y + 1);
  for (int k = 0; k < 5; k++) y = K$s(0.5) * (y + x / y);
  I$s s = (I$s)(y * K$s($scale)), rest = (m << (odd + $fraction)) - s * s; /* modulo a word: the difference is small */
  for (; rest & SIGN$s; rest += 2 * s + 1) s--;
  for (; rest > 2 * s; s++) rest -= 2 * s + 1;
  s += rest > s;
  return REAL$s((s & (((I$s)1 << $fraction) - 1)) | (I$s)(half + $bias) << $fraction);
}
#endif

/* Copies the first n results y of a call to its arguments x; returns 0 if all bits were equal before. */
static inline int MOVED$s(V$s *x, const V$s *y, int n) {
  int j = 0, moved = 0;
  for (; j < n; j++) {
    if (BITS$s(x[j]) != BITS$s(y[j])) moved = 1;
    x[j] = y[j];
  }
  return moved;
}
