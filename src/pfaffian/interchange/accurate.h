/* Co-simulation under error control: between two communication points the steps of a run to an accuracy. The numbers of a lane
   are those of attempt.py. */
static const double CLOSE = 1e-9; /* of instants that an importer means to be one, relative to a step or period */
static Program *const SAMPLER_PROGRAM[] = SAMPLERS;
static const int SAMPLER_NF[] = SAMPLER_FAULTS;

/* Status of a state with faults: 0 good, 1 not finite or beyond the limit, first + j for fault j. */
static int verdict(const double *x, int n, const double *fault, int faults, int first) {
  int good = 1, status;
  for (int j = 0; j < n; j++) good &= FABS(x[j]) <= LIMIT;
  status = !good;
  for (int j = faults - 1; j >= 0; j--)
    if (fault[j] != 0.0 && (good || fault[j] == fault[j])) status = first + j;
  return status;
}

static int same_instant(double a, double b) { return FABS(a - b) <= SAME * FABS(b); }

/* The instant of sampler j that is nearest to a time since the start. */
static double instant(int j, double time) {
  const double k = __builtin_floor((time - PHASE[j]) / PERIOD[j] + 0.5);
  return PHASE[j] + (k > 0 ? k : 0) * PERIOD[j];
}

/* Numbers of a state, inputs, parameters and the time, as a sampler and an observation take them. */
static void given(const Machine *now, double *in) {
  memcpy(in, now->x, N_X * sizeof(double));
  memcpy(in + N_X, now->u, N_U * sizeof(double));
  memcpy(in + N_X + N_U, now->p, N_P * sizeof(double));
  in[N_X + N_U + N_P] = now->t0 + now->lane[TIME];
}

/* Evaluates the parts of the law that are due now, and at the start what a first step needs. */
static void sample(Instance *i, Machine *now) {
  double in[N_X + N_U + N_P + 1], out[SAMPLER_OUT + 1];
  for (int j = 0, first = 2 + ATTEMPT_OUT[1]; j < N_SAMPLERS; first += SAMPLER_NF[j++]) {
    if (!same_instant(instant(j, now->lane[TIME]), now->lane[TIME])) continue;
    given(now, in);
    SAMPLER_PROGRAM[j](in, out, i->work, NULL, FRAME);
    now->status = verdict(out, N_X, out + N_X, SAMPLER_NF[j], first);
    if (now->status) return;
    memcpy(now->x, out, N_X * sizeof(double));
  }
}

/* The lane of a machine, as it begins with its state. */
static void enter_lane(Instance *i, Machine *now) {
  double *lane = now->lane;
  memcpy(lane, now->x, IN_X * sizeof(double));
  memcpy(lane + DISCRETE, now->x + IN_X, (N_X - IN_X) * sizeof(double));
  lane[BEGIN_TIME] = now->t0, lane[TOLERANCE] = STEP_TOLERANCE, lane[LONGEST] = INFINITE, lane[SINCE] = lane[TIME];
  if (lane[TIME] > 0.0) return;
  double in[LANE + 2 * N_U + N_P];
  memcpy(in, lane, LANE * sizeof(double));
  memcpy(in + LANE, now->u, N_U * sizeof(double));
  memset(in + LANE + N_U, 0, N_U * sizeof(double));
  memcpy(in + LANE + 2 * N_U, now->p, N_P * sizeof(double));
  BEGIN(in, lane, i->work, NULL, FRAME);
}

static void leave_lane(Machine *now) {
  memcpy(now->x, now->lane, IN_X * sizeof(double));
  memcpy(now->x + IN_X, now->lane + DISCRETE, (N_X - IN_X) * sizeof(double));
}

/* Tries steps up to the barrier. */
static void pass(Instance *i, Machine *now) {
  double *lane = now->lane, in[LANE + 4 * N_U + N_P + 2], out[ATTEMPT_OUT_TOTAL + 1];
  memset(in, 0, sizeof in);
  memcpy(in + LANE, now->u, N_U * sizeof(double));
  memcpy(in + LANE + 2 * N_U, now->u, N_U * sizeof(double));
  memcpy(in + LANE + 4 * N_U, now->p, N_P * sizeof(double));
  for (int64_t tried = 0; lane[TIME] < lane[BARRIER]; tried++) {
    if (tried == MOST_TRIED) now->status = TOO_MANY;
    if (now->status) return;
    memcpy(in, lane, LANE * sizeof(double));
    (lane[IMPLICIT] == 1.0 ? STIFF : ATTEMPT)(in, out, i->work, NULL, FRAME);
    now->status = verdict(out, MOVING, out + MOVING, ATTEMPT_OUT[1], 2);
    if (!now->status) memcpy(lane, out, MOVING * sizeof(double));
  }
}

/* The next instant after now at which equations may change abruptly, at most `end`. */
static double barrier(const Machine *now, double end) {
  const double since = now->lane[TIME], after = since * (1 + SAME);
  double next = end;
  for (int j = 0; j < N_SAMPLERS; j++) {
    double t = instant(j, since);
    if (!(t > after)) t = instant(j, t + PERIOD[j]);
    if (t > after && t < next) next = t;
  }
  for (int j = 0; j < N_MARKS; j++) {
    const double t = MARKS[j] - (now->t0 - T_START);
    if (t > after && t < next) next = t;
  }
  return next;
}

static int find(Instance *i, int part) {
  Machine now = i->now; /* samples at this instant belong to the record only; the next step takes them again */
  double in[N_X + N_U + N_P + 1];
  FP_ENTER;
  sample(i, &now);
  enter_lane(i, &now);
  leave_lane(&now);
  given(&now, in);
  OBSERVE(in, i->found, i->work, NULL, FRAME);
  FP_LEAVE;
  i->known = RATES | OUTPUTS;
  return GOOD;
}

static int do_step(Instance *i, double t, double h, double *reached) {
  Machine *now = &i->now;
  *reached = now->t;
  if (now->phase != READY) return refuse(i, "a step needs a machine that has been initialised");
  if (now->status) return failed(i);
  if (!(FABS(t - now->t) <= CLOSE * (h + FABS(t)))) return refuse(i, "the communication point is not the time that was reached");
  double end = t + h - now->t0;
  for (int j = 0; j < N_SAMPLERS; j++) {
    const double near = instant(j, end);
    if (FABS(end - near) <= CLOSE * PERIOD[j]) end = near;
  }
  if (!(end > now->lane[TIME])) return refuse(i, "a communication step must be longer than 0");
  i->known = 0;
  FP_ENTER;
  while (!now->status && now->lane[TIME] * (1 + SAME) < end) {
    sample(i, now);
    if (now->status) break;
    enter_lane(i, now);
    now->lane[BARRIER] = now->lane[END] = barrier(now, end);
    pass(i, now);
    leave_lane(now);
  }
  FP_LEAVE;
  now->t = now->t0 + now->lane[TIME];
  *reached = now->t;
  return now->status ? failed(i) : GOOD;
}
