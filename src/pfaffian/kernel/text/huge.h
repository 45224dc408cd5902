/* Applies reduce_one of reduction.h to the lanes where |x| exceeds the limit or is nan. */
static NOINLINE void reduce_huge(V x, V limit, V *n, V *high, V *low) {
  double *nn = (double *)n, *hh = (double *)high, *ll = (double *)low;
  const double *xx = (const double *)&x, bound = *(const double *)&limit;
  for (int i = 0; i < W; i++)
    if (!(__builtin_fabs(xx[i]) <= bound)) reduce_one(xx[i], nn + i, hh + i, ll + i);
}
