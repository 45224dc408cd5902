/* Exact reduction of huge angles modulo pi/2, lane by lane (Payne and Hanek); reduction.py says the same in Python. */
static void reduce_one(double x, double *n, double *high, double *low) {
  typedef unsigned __int128 U;
  const double half_pi = 0x1.921fb54442d18p+0, rest_of_half_pi = 0x1.1a62633145c07p-54, magic = 0x1.8p+52;
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const int exponent = (int)(bits >> 52 & 2047);
  if (exponent == 2047) {
    *n = magic, *high = *low = __builtin_nan("");
    return;
  }
  const uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  const int shift = 1216 - (exponent - 1075) - 190, word = shift >> 6, bit = shift & 63;
  uint64_t window[3];
  for (int i = 0; i < 3; i++)
    window[i] = (uint64_t)((((U)TWO_OVER_PI[word + i + 1] << 64) | TWO_OVER_PI[word + i]) >> bit);
  const U p0 = (U)m * window[0], p1 = (U)m * window[1] + (p0 >> 64);
  const uint64_t top = m * window[2] + (uint64_t)(p1 >> 64);
  const U fraction = ((U)top << 66) | ((U)(uint64_t)p1 << 2) | ((uint64_t)p0 >> 62);
  const int upper = (int)(fraction >> 127), negative = (int)(bits >> 63);
  const int quadrant = (int)(top >> 62) + upper;
  const U magnitude = upper ? -fraction : fraction;
  double h = (double)magnitude;
  const double rest = (double)(__int128)(magnitude - (U)h) * 0x1p-128;
  h *= 0x1p-128;
  double c = 134217729.0 * h, d = 134217729.0 * half_pi;
  const double a1 = c - (c - h), a2 = h - a1, b1 = d - (d - half_pi), b2 = half_pi - b1;
  const double p = h * half_pi, error = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
  const double tail = error + (h * rest_of_half_pi + rest * half_pi), sum = p + tail, sign = negative != upper ? -1.0 : 1.0;
  *n = magic + (double)((negative ? -quadrant : quadrant) & 3);
  *high = sign * sum;
  *low = sign * ((p - sum) + tail);
}

static NOINLINE void reduce_huge(V x, V limit, V *n, V *high, V *low) {
  double *nn = (double *)n, *hh = (double *)high, *ll = (double *)low;
  const double *xx = (const double *)&x, bound = *(const double *)&limit;
  for (int i = 0; i < W; i++)
    if (!(__builtin_fabs(xx[i]) <= bound)) reduce_one(xx[i], nn + i, hh + i, ll + i);
}
