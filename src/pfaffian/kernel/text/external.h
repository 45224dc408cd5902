/* Calls a Program in the way in which CasADi calls a function of a library: with the nonzeros of each argument and result, and
   a null pointer for an argument of zeros and for a result that is not needed. w: FRAME doubles of the caller, so that threads
   share no memory. */
static INLINE int call_external(Program *program, const int *in_sizes, int n_in, const int *out_sizes, int n_out,
                                const double **arg, double **res, double *w) {
  FP_ENTER;
  V *to = w;
  for (int i = 0; i < n_in; i++)
    for (int j = 0; j < in_sizes[i]; j++) *to++ = arg[i] ? arg[i][j] : 0.0;
  V *const results = to, *from = results;
  for (int i = 0; i < n_out; i++) to += out_sizes[i];
  program(w, results, to, 0, FRAME); /* no table: all numbers are in the text */
  for (int i = 0; i < n_out; from += out_sizes[i++])
    if (res[i]) __builtin_memcpy(res[i], from, sizeof(double) * (size_t)out_sizes[i]);
  FP_LEAVE;
  return 0;
}

/* The functions that CasADi looks up for a Function of this name. P: the name of its Program. */
#define EXTERNAL(name, P)                                                                                                 \
  int name(const double **arg, double **res, long long *iw, double *w, int mem) {                                        \
    (void)iw, (void)mem;                                                                                                  \
    return call_external(P, P##_IN, P##_N_IN, P##_OUT, P##_N_OUT, arg, res, w);                                           \
  }                                                                                                                       \
  long long name##_n_in(void) { return P##_N_IN; }                                                                       \
  long long name##_n_out(void) { return P##_N_OUT; }                                                                     \
  double name##_default_in(long long i) { return P##_DEFAULTS[i]; }                                                      \
  const char *name##_name_in(long long i) { return P##_NAMES_IN[i]; }                                                    \
  const char *name##_name_out(long long i) { return P##_NAMES_OUT[i]; }                                                  \
  const long long *name##_sparsity_in(long long i) { return P##_PATTERNS_IN[i]; }                                        \
  const long long *name##_sparsity_out(long long i) { return P##_PATTERNS_OUT[i]; }                                      \
  int name##_work(long long *arg, long long *res, long long *iw, long long *w) {                                         \
    *arg = P##_N_IN, *res = P##_N_OUT, *iw = 0, *w = FRAME;                                                               \
    return 0;                                                                                                             \
  }
