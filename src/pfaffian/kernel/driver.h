/* The loop over the runs [begin, end) of a batch; begin is a multiple of W. w: inputs, outputs, slots. */
void pfaffian_evaluate(const Port *in, const Port *out, int64_t batch, int64_t begin, int64_t end, V *w) {
  V *const results = w + PROGRAM_IN_TOTAL, *const slots = results + PROGRAM_OUT_TOTAL;
  FP_ENTER;
  for (int64_t b = begin; b < end; b += W) {
    V *to = w;
    for (int i = 0; i < PROGRAM_N_IN; to += PROGRAM_IN[i++])
      if (b == begin || in[i].run != 0) read_port(in + i, PROGRAM_IN[i], b, batch, to);
    PROGRAM(w, results, slots);
    const V *from = results;
    for (int i = 0; i < PROGRAM_N_OUT; from += PROGRAM_OUT[i++]) write_port(out + i, PROGRAM_OUT[i], b, batch, from);
  }
  FP_LEAVE;
}

void pfaffian_trial(double *in, double *out, V *w) {
  Port from[PROGRAM_N_IN + 1], to[PROGRAM_N_OUT + 1];
  for (int i = 0; i < PROGRAM_N_IN; i++) from[i] = trial_port(&in, PROGRAM_IN[i]);
  for (int i = 0; i < PROGRAM_N_OUT; i++) to[i] = trial_port(&out, PROGRAM_OUT[i]);
  pfaffian_evaluate(from, to, TRIAL_RUNS, 0, TRIAL_RUNS, w);
}
