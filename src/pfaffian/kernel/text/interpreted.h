/* What callers of the interpreter call: as the functions of compiled kernels, with the Code before their arguments. */
void pfaffian_interpret(const Code *given, const Port *in, const Port *out, int64_t batch, int64_t first, int64_t end, V *w) {
  FP_ENTER;
  begin(given);
  evaluate(PROGRAM, PROGRAM_IN, PROGRAM_N_IN, PROGRAM_OUT, PROGRAM_N_OUT, in, out, batch, first, end, w);
  FP_LEAVE;
}

void pfaffian_interpret_rollout(const Code *given, const Rollout *r, int64_t first, int64_t end, V *w) {
  begin(given);
  pfaffian_rollout(r, first, end, w);
}

#undef pfaffian_trial
void pfaffian_trial(double *in, double *out, V *w) {
  FP_ENTER;
  begin(&TRIED);
  try_loops(in, out, w);
  FP_LEAVE;
}
