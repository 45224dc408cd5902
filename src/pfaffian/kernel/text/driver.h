/* The runs [begin, end) of a batch. */
void pfaffian_evaluate(const Port *in, const Port *out, int64_t batch, int64_t begin, int64_t end, V *w) {
  FP_ENTER;
  evaluate(PROGRAM, PROGRAM_IN, PROGRAM_N_IN, PROGRAM_OUT, PROGRAM_N_OUT, in, out, batch, begin, end, w);
  FP_LEAVE;
}

void pfaffian_trial(double *in, double *out, V *w) {
  FP_ENTER;
  TRY(PROGRAM, &in, &out, w);
  FP_LEAVE;
}
