/* Co-simulation under error control: between two communication points the steps of a run to an accuracy. The numbers of a lane
   are those of attempt.py. */
static int same_instant(double a, double b) { return FABS(a - b) <= SAME * FABS(b); }

/* The instant of sampler j that is nearest to a time since the start. */
static double instant(int j, double time) {
  const double k = __builtin_floor((time - PHASE[j]) / PERIOD[j] + 0.5);
  return PHASE[j] + (k > 0 ? k : 0) * PERIOD[j];
}

/* Evaluates the parts of the law that are due. */
static void sample(Instance *i, Machine *now) {
  now->t = now->t0 + now->lane[TIME];
  for (int j = 0; j < N_SAMPLERS && !now->status; j++)
    if (!CLOCKED && same_instant(instant(j, now->lane[TIME]), now->lane[TIME])) evaluate_part(i, now, j);
}

/* Puts the state of a machine into its lane, at the start with the first length of a step. */
static void enter_lane(Instance *i, Machine *now) {
  double *lane = now->lane, in[LANE + 2 * N_U + N_P + 1];
  memcpy(lane, now->x, IN_X * sizeof(double));
  memcpy(lane + DISCRETE, now->x + IN_X, (N_X - IN_X) * sizeof(double));
  lane[BEGIN_TIME] = now->t0, lane[TOLERANCE] = STEP_TOLERANCE, lane[LONGEST] = INFINITE, lane[SINCE] = lane[TIME];
  if (lane[TIME] > 0.0) return;
  memcpy(in, lane, LANE * sizeof(double));
  memcpy(in + LANE, now->u, N_U * sizeof(double));
  memset(in + LANE + N_U, 0, N_U * sizeof(double));
  memcpy(in + LANE + 2 * N_U, now->p, N_P * sizeof(double));
  FP_ENTER;
  BEGIN(in, lane, i->work, NULL, FRAME);
  FP_LEAVE;
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
  FP_ENTER;
  for (int64_t tried = 0; lane[TIME] < lane[BARRIER] && !now->status; tried++) {
    memcpy(in, lane, LANE * sizeof(double));
    (lane[IMPLICIT] == 1.0 ? STIFF : ATTEMPT)(in, out, i->work, NULL, FRAME);
    now->status = judged(out, STEPPED, out + STEPPED, ATTEMPT_OUT[1], 2);
    if (!now->status) memcpy(lane, out, STEPPED * sizeof(double));
    if (!now->status && tried + 1 == MOST_TRIED) now->status = TOO_MANY;
  }
  FP_LEAVE;
}

/* The next instant after now at which equations may change abruptly, at most `end`. */
static double barrier(const Machine *now, double end) {
  const double since = now->lane[TIME], after = since * (1 + SAME);
  double next = end;
  for (int j = 0; !CLOCKED && j < N_SAMPLERS; j++) {
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
  sample(i, &now);
  enter_lane(i, &now);
  leave_lane(&now);
  given(&now, in);
  FP_ENTER;
  OBSERVE(in, i->found, i->work, NULL, FRAME);
  FP_LEAVE;
  i->known = RATES | OUTPUTS;
  return GOOD;
}

static int do_step(Instance *i, double t, double h, double *reached) {
  Machine *now = &i->now;
  *reached = now->t;
  if (may_step(i, t, CLOSE * (h + FABS(t))) != GOOD) return WRONG;
  double end = t + h - now->t0;
  for (int j = 0; !CLOCKED && j < N_SAMPLERS; j++) {
    const double near = instant(j, end);
    if (FABS(end - near) <= CLOSE * PERIOD[j]) end = near;
  }
  if (!(end > now->lane[TIME])) return refuse(i, "a communication step must be longer than 0");
  i->known = 0;
  while (!now->status && now->lane[TIME] * (1 + SAME) < end) {
    sample(i, now);
    if (now->status) break;
    enter_lane(i, now);
    now->lane[BARRIER] = now->lane[END] = barrier(now, end);
    pass(i, now);
    leave_lane(now);
  }
  now->t = now->t0 + now->lane[TIME];
  *reached = now->t;
  return now->status ? failed(i) : GOOD;
}
