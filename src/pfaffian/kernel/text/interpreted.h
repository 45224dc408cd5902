/* The functions of the interpreter. They correspond to those of compiled kernels, with the Code as an additional first
   argument. */
void pfaffian_interpret(const Code *given, const Port *in, const Port *out, int64_t batch, int64_t first, int64_t end, V *w) {
  FP_ENTER;
  begin(given, 0);
  evaluate(PROGRAM, 0, PROGRAM_IN, PROGRAM_N_IN, PROGRAM_OUT, PROGRAM_N_OUT, in, out, batch, first, end, w);
  FP_LEAVE;
}

void pfaffian_interpret_rollout(const Code *given, const Rollout *r, int64_t first, int64_t end, V *w) {
  begin(given, 0);
  pfaffian_rollout(0, r, first, end, w);
}

/* The trials of compiled kernels, run by the interpreter: a compiled kernel must give the same outputs. */
void pfaffian_interpret_trial(const Code *given, double *in, double *out, V *w) {
  FP_ENTER;
  begin(given, 0);
  TRY(PROGRAM, 0, &in, &out, w);
  FP_LEAVE;
}

void pfaffian_interpret_rollout_trial(const Code *given, double *in, double *out, V *w) {
  begin(given, 0);
  try_loops(0, in, out, w);
}

/* Evaluates a batch and notes the decisions in the log. */
void pfaffian_interpret_noting(const Code *given, const Port *in, const Port *out, int64_t batch, Log *log, V *w) {
  FP_ENTER;
  begin(given, log);
  evaluate(PROGRAM, 0, PROGRAM_IN, PROGRAM_N_IN, PROGRAM_OUT, PROGRAM_N_OUT, in, out, batch, 0, batch, w);
  FP_LEAVE;
}

#undef pfaffian_trial
void pfaffian_trial(const double *c, double *in, double *out, V *w) { (void)c, pfaffian_interpret_rollout_trial(&TRIED, in, out, w); }
