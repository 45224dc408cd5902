/* The parts of a law in discrete time at their instants: time events of the machine, or ticks of clocks that the importer has. */
static Program *const PART[] = SAMPLERS;
static const int PART_FAULTS[] = SAMPLER_FAULTS;
static const double CLOSE = 1e-9; /* of instants that an importer means to be one, relative to a period or step */

/* Status of a state with faults: 0 good, 1 not finite or beyond the limit, first + j for fault j. */
static int judged(const double *x, int n, const double *fault, int faults, int first) {
  int good = 1;
  for (int j = 0; j < n; j++) good &= FABS(x[j]) <= LIMIT;
  int status = !good;
  for (int j = faults - 1; j >= 0; j--)
    if (fault[j] != 0.0 && (good || fault[j] == fault[j])) status = first + j;
  return status;
}

/* State, inputs, parameters and time, as parts of a law and an observation take them. */
static void given(const Machine *now, double *in) {
  memcpy(in, now->x, N_X * sizeof(double));
  memcpy(in + N_X, now->u, N_U * sizeof(double));
  memcpy(in + N_X + N_U, now->p, N_P * sizeof(double));
  in[N_X + N_U + N_P] = now->t;
}

/* Evaluates the parts with number j. */
static void evaluate_part(Instance *i, Machine *now, int j) {
  double in[N_X + N_U + N_P + 1], out[SAMPLER_OUT + 1];
  int first = FIRST_SAMPLED;
  for (int k = 0; k < j; k++) first += PART_FAULTS[k];
  given(now, in);
  FP_ENTER;
  PART[j](in, out, i->work, NULL, FRAME);
  FP_LEAVE;
  now->status = judged(out, N_X, out + N_X, PART_FAULTS[j], first);
  if (!now->status) memcpy(now->x, out, N_X * sizeof(double));
}

/* The next instant of parts whose instants are time events. */
static double due(const Machine *now, int j) { return now->t0 + PHASE[j] + (double)now->taken[j] * PERIOD[j]; }

/* In an event: evaluates what is due; returns whether it could. */
static int take(Instance *i) {
  Machine *now = &i->now;
  for (int j = 0; j < N_SAMPLERS; j++) {
    if (CLOCKED ? !now->ticks[j] : !TIME_EVENTS || now->t < due(now, j) - CLOSE * PERIOD[j]) continue;
    evaluate_part(i, now, j);
    i->known = 0;
    if (now->status) return failed(i);
    now->ticks[j] = 0;
    now->taken[j] = 1 + (int64_t)__builtin_floor((now->t - now->t0 - PHASE[j]) / PERIOD[j] + CLOSE);
  }
  return GOOD;
}

/* Whether there is a next time event, and when. */
static int next_event(const Machine *now, double *next) {
  for (int j = 0; TIME_EVENTS && j < N_SAMPLERS; j++)
    if (!j || due(now, j) < *next) *next = due(now, j);
  return TIME_EVENTS && N_SAMPLERS;
}

static int clock_of(unsigned r) { return CLOCKED && r >= N_VARIABLES && r < N_VARIABLES + N_SAMPLERS ? (int)(r - N_VARIABLES) : -1; }

static int are_clocks(Instance *i, const unsigned *vr, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (clock_of(vr[k]) < 0) return refuse(i, "there is no clock of this value reference");
  return GOOD;
}

static int tick(Instance *i, const unsigned *vr, size_t n, const _Bool *value) {
  if (are_clocks(i, vr, n) != GOOD) return WRONG;
  for (size_t k = 0; k < n; k++) i->now.ticks[clock_of(vr[k])] = value[k];
  return GOOD;
}

static int ticking(Instance *i, const unsigned *vr, size_t n, _Bool *value) {
  if (are_clocks(i, vr, n) != GOOD) return WRONG;
  for (size_t k = 0; k < n; k++) value[k] = i->now.ticks[clock_of(vr[k])];
  return GOOD;
}

/* Intervals or shifts of clocks. */
static int clock_times(Instance *i, const unsigned *vr, size_t n, const double *of, double *value) {
  if (are_clocks(i, vr, n) != GOOD) return WRONG;
  for (size_t k = 0; k < n; k++) value[k] = of[clock_of(vr[k])];
  return GOOD;
}
