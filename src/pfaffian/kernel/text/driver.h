/* Evaluates the runs [begin, end) of a batch. */
void pfaffian_evaluate(const double *c, const Port *in, const Port *out, int64_t batch, int64_t begin, int64_t end, V *w) {
  FP_ENTER;
  evaluate(PROGRAM, c, PROGRAM_IN, PROGRAM_N_IN, PROGRAM_OUT, PROGRAM_N_OUT, in, out, batch, begin, end, w);
  FP_LEAVE;
}

void pfaffian_trial(const double *c, double *in, double *out, V *w) {
  FP_ENTER;
  TRY(PROGRAM, c, &in, &out, w);
  FP_LEAVE;
}
