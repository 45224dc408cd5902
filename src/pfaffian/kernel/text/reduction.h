/* Exact reduction of a huge angle modulo pi/2 (Payne and Hanek), in C99; reduce_huge of reduction.py does the same in
   Python. */
static void reduce_one(double x, double *n, double *high, double *low) {
  const double half_pi = 0x1.921fb54442d18p+0, rest_of_half_pi = 0x1.1a62633145c07p-54, magic = 0x1.8p+52;
  union { double real; uint64_t bits; } u;
  u.real = x;
  const uint64_t bits = u.bits;
  const int exponent = (int)(bits >> 52 & 2047);
  if (exponent == 2047) {
    u.bits = UINT64_C(0x7ff8000000000000);
    *n = magic, *high = *low = u.real;
    return;
  }

  /* The mantissa times the window of 2/pi whose bits give no whole turns, modulo 2^192, in words of 32 bits. */
  const uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52, factor[2] = {m & UINT32_MAX, m >> 32};
  const int shift = 1216 - (exponent - 1075) - 190, bit = shift & 31;
  uint64_t product[6] = {0};
  for (int i = 0; i < 2; i++) {
    uint64_t carry = 0;
    for (int j = 0; i + j < 6; j++) {
      const int k = (shift >> 5) + j;
      const uint64_t near = TWO_OVER_PI[k >> 1] >> 32 * (k & 1) & UINT32_MAX;
      const uint64_t next = TWO_OVER_PI[(k + 1) >> 1] >> 32 * ((k + 1) & 1) & UINT32_MAX;
      const uint64_t sum = factor[i] * ((next << 32 | near) >> bit & UINT32_MAX) + product[i + j] + carry;
      product[i + j] = sum & UINT32_MAX;
      carry = sum >> 32;
    }
  }
  const uint64_t top = product[5] << 32 | product[4], mid = product[3] << 32 | product[2];
  uint64_t a = top << 2 | mid >> 62, b = mid << 2 | product[1] >> 30; /* the fraction, a 2^-64 + b 2^-128 */
  const int upper = (int)(a >> 63), negative = (int)(bits >> 63), quadrant = (int)(top >> 62) + upper;
  if (upper) {
    b = ~b + 1;
    a = ~a + (b == 0);
  }

  /* The fraction as the nearest double, and the remainder as another double. */
  double part[2] = {0.0, 0.0}, side = 1.0;
  int power = -53;
  for (int i = 0; i < 2 && (a | b) != 0; i++) {
    for (; a >> 63 == 0; power--) a = a << 1 | b >> 63, b <<= 1;
    const uint64_t whole = a >> 11, rest = a & 2047;
    const uint64_t up = rest > 1024 || (rest == 1024 && (b != 0 || (whole & 1) != 0));
    u.bits = (uint64_t)(1023 + power) << 52;
    part[i] = side * (double)(whole + up) * u.real;
    a = up ? 2048 - rest - (b != 0) : rest;
    b = up ? ~b + 1 : b;
    side = up ? -side : side;
  }

  /* Times pi/2, by Dekker's product. */
  const double h = part[0], rest = part[1], c = 134217729.0 * h, d = 134217729.0 * half_pi;
  const double a1 = c - (c - h), a2 = h - a1, b1 = d - (d - half_pi), b2 = half_pi - b1;
  const double p = h * half_pi, error = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
  const double tail = error + (h * rest_of_half_pi + rest * half_pi), sum = p + tail, sign = negative != upper ? -1.0 : 1.0;
  *n = magic + (double)((negative ? -quadrant : quadrant) & 3);
  *high = sign * sum;
  *low = sign * ((p - sum) + tail);
}
