/* Runs one task of the trial. in: the length of each of the ARRAYS, then the arrays; the first array contains the number of
   the task. out: the number of words, the counts, the words, the outputs, and the values that a tail takes from the head. */
enum { WHICH, SIZES, WORDS_IN, OUTPUTS, RECORDS, MEANING, IN_PORTS, OUT_PORTS, CONSTANTS, CALLS, PLACES, ROWS, ARRAYS };

void pfaffian_trial(const double *table, const double *in, double *out, void *work) {
  (void)table, (void)work;
  int32_t *a[ARRAYS];
  const double *from = in + ARRAYS;
  for (int i = 0; i < ARRAYS; i++) {
    const int64_t n = (int64_t)in[i];
    a[i] = numbers(n, 0);
    for (int64_t k = 0; k < n; k++) a[i][k] = (int32_t)*from++;
  }
  const int32_t *const w = a[WHICH]; /* task, first, zero, n_in, count, steps, values, base, instructions, places */
  const Given g = {w[1], w[2], (int64_t)in[WORDS_IN], (int64_t)in[OUTPUTS], a[SIZES], a[WORDS_IN], a[OUTPUTS]};
  int32_t *const to = numbers(ROOM, 0), *const more = numbers(ROOM, 0);
  int64_t counts[3] = {0, 0, 0}, n, skipped = w[0] == TAIL ? w[4] : 0;
  if (w[0] == TAIL) {
    n = pfaffian_tail(&g, w[3], w[4], more, to);
  } else if (w[0] == ENCODE) {
    const Placing p = {w[5], w[6], w[7], a[PLACES], a[ROWS]};
    pfaffian_encode(&g, &p, to, counts);
    n = counts[0] + g.n_outputs;
  } else if (w[0] == LIST) {
    const Listing l = {w[8], w[9], a[RECORDS], a[MEANING], a[IN_PORTS], a[OUT_PORTS], a[CONSTANTS], a[CALLS]};
    n = pfaffian_list(&g, &l, to);
  } else {
    n = pfaffian_pass(w[0], &g, to);
  }
  *out++ = (double)n;
  for (int i = 0; i < 3; i++) *out++ = (double)counts[i];
  for (int64_t i = 0; i < ROOM; i++) *out++ = i < n ? to[i] : 0;
  for (int64_t i = skipped; i < ROOM + skipped; i++) *out++ = i < g.n_outputs ? g.outputs[i] : 0;
  for (int64_t i = 0; i < ROOM; i++) *out++ = w[0] == TAIL && i <= more[0] ? more[i] : 0;
  for (int i = 0; i < ARRAYS; i++) free(a[i]);
  free(to), free(more);
}
