/* Co-simulation under error control: between two communication points the steps of a run to an accuracy. The numbers of a lane
   are those of attempt.py. */
static int same_instant(double a, double b) { return FABS(a - b) <= SAME * FABS(b); }

/* The instant of sampler j that is nearest to a time since the start. */
static double instant(int j, double time) {
  const double k = __builtin_floor((time - PHASE[j]) / PERIOD[j] + 0.5);
  return PHASE[j] + (k > 0 ? k : 0) * PERIOD[j];
}

/* The inputs of a lane, [u, its rate 0, since, barrier], once or twice, and all that programs of lanes take. */
enum { ROW = 2 * N_U + 2, ASKED = LANE + 2 * ROW + N_P + 2 };

/* The lane, its inputs once or twice, and the parameters, as programs of lanes take them. */
static void asked(const Machine *now, double since, double barrier, int times, double *in) {
  memset(in, 0, ASKED * sizeof(double));
  memcpy(in, now->lane, LANE * sizeof(double));
  for (double *row = in + LANE; row < in + LANE + times * ROW; row += ROW) {
    memcpy(row, now->u, N_U * sizeof(double));
    row[2 * N_U] = since, row[2 * N_U + 1] = barrier;
  }
  memcpy(in + LANE + times * ROW, now->p, N_P * sizeof(double));
}

/* Calls the parts of the law as the loop does before each step: they change the lane if one of them is due. */
static void sample(Instance *i, Machine *now) {
  double in[ASKED], out[SAMPLER_OUT + 1];
  int due = 0;
  for (int j = 0; !CLOCKED && j < N_SAMPLERS; j++) due |= same_instant(instant(j, now->lane[TIME]), now->lane[TIME]);
  for (int j = 0, first = FIRST_SAMPLED; due && j < N_SAMPLERS && !now->status; first += PART_FAULTS[j++]) {
    asked(now, now->lane[TIME], INFINITE, 1, in);
    PART[j](in, out, i->work, NULL, FRAME);
    now->status = judged(out, MOVING, out + MOVING, PART_FAULTS[j], first);
    if (!now->status) memcpy(now->lane, out, MOVING * sizeof(double));
  }
}

/* Puts the state of a machine into its lane, at the start with the first length of a step. */
static void enter_lane(Instance *i, Machine *now) {
  double *lane = now->lane, in[ASKED];
  memcpy(lane, now->x, IN_X * sizeof(double));
  memcpy(lane + DISCRETE, now->x + IN_X, (N_X - IN_X) * sizeof(double));
  lane[BEGIN_TIME] = now->t0, lane[TOLERANCE] = STEP_TOLERANCE, lane[LONGEST] = INFINITE;
  if (lane[TIME] > 0.0) return;
  lane[SAMPLED] = CLOCKED ? lane[TIME] : -1.0; /* ticks of clocks come before */
  asked(now, lane[TIME], INFINITE, 1, in);
  FP_ENTER;
  BEGIN(in, lane, i->work, NULL, FRAME);
  FP_LEAVE;
}

static void leave_lane(Machine *now) {
  memcpy(now->x, now->lane, IN_X * sizeof(double));
  memcpy(now->x + IN_X, now->lane + DISCRETE, (N_X - IN_X) * sizeof(double));
}

/* Tries steps up to a barrier. */
static void pass(Instance *i, Machine *now, double barrier) {
  double *lane = now->lane, in[ASKED], out[ATTEMPT_OUT_TOTAL + 1];
  const double since = lane[TIME];
  FP_ENTER;
  for (int64_t tried = 0; lane[TIME] < barrier && !now->status; tried++) {
    sample(i, now);
    if (now->status) break;
    asked(now, since, barrier, 2, in);
    (lane[IMPLICIT] == 1.0 ? STIFF : ATTEMPT)(in, out, i->work, NULL, FRAME);
    now->status = judged(out, STEPPED, out + STEPPED, ATTEMPT_OUT[1], 2);
    if (!now->status) memcpy(lane, out, STEPPED * sizeof(double));
    if (!now->status && tried + 1 == MOST_TRIED) now->status = TOO_MANY;
  }
  FP_LEAVE;
}

/* The next instant after now at which equations change abruptly with time, at most `end`; steps end at instants of the law. */
static double barrier(const Machine *now, double end) {
  const double after = now->lane[TIME] * (1 + SAME);
  double next = end;
  for (int j = 0; j < N_MARKS; j++) {
    const double t = MARKS[j] - (now->t0 - T_START);
    if (t > after && t < next) next = t;
  }
  return next;
}

static int find(Instance *i, int part) {
  Machine now = i->now; /* samples at this instant belong to the record only; the next step takes them again */
  double in[N_X + N_U + N_P + 1];
  enter_lane(i, &now);
  now.lane[END] = INFINITE;
  FP_ENTER;
  sample(i, &now);
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
  if (may_step(i, t, CLOSE * (h + FABS(t))) != GOOD) return WRONG;
  double end = t + h - now->t0;
  for (int j = 0; !CLOCKED && j < N_SAMPLERS; j++) {
    const double near = instant(j, end);
    if (FABS(end - near) <= CLOSE * PERIOD[j]) end = near;
  }
  if (!(end > now->lane[TIME])) return refuse(i, "a communication step must be longer than 0");
  i->known = 0;
  while (!now->status && now->lane[TIME] * (1 + SAME) < end) {
    enter_lane(i, now);
    now->lane[END] = barrier(now, end);
    pass(i, now, now->lane[END]);
    leave_lane(now);
  }
  now->t = now->t0 + now->lane[TIME];
  *reached = now->t;
  return now->status ? failed(i) : GOOD;
}
