/* Model exchange: the rates of the state, for the integrator of the importer. */
static void evaluated(Program *program, Instance *i, const double *x, const double *more, int n, double *out) {
  double in[2 * N_X + 2 * N_U + N_P + N_Y + 2];
  memcpy(in, x, N_X * sizeof(double));
  memcpy(in + N_X, i->now.u, N_U * sizeof(double));
  memcpy(in + N_X + N_U, i->now.p, N_P * sizeof(double));
  in[N_X + N_U + N_P] = i->now.t;
  if (n) memcpy(in + N_X + N_U + N_P + 1, more, n * sizeof(double));
  FP_ENTER;
  program(in, out, i->work, NULL, FRAME);
  FP_LEAVE;
}

static int find(Instance *i, int part) {
  if (part == OUTPUTS) {
    if (!(i->known & RATES) && find(i, RATES) != GOOD) return WRONG;
    evaluated(OBSERVE, i, i->now.x, NULL, 0, i->found + N_RATE);
    i->known |= OUTPUTS;
    return GOOD;
  }
  double out[N_RATE + N_SIDE + N_FAULT + 1];
  evaluated(DERIVE, i, i->now.x, NULL, 0, out);
  memcpy(i->found, out, sizeof(double) * N_RATE);
  memcpy(i->found + N_RATE + N_Y, out + N_RATE, sizeof(double) * N_SIDE);
  for (int j = 0; j < N_FAULT; j++)
    if (out[N_RATE + N_SIDE + j] != 0.0) {
      i->now.status = FIRST_FAULT + j;
      return failed(i);
    }
  for (int j = 0; j < N_RATE; j++)
    if (!(FABS(out[j]) <= LIMIT)) {
      i->now.status = 1;
      return failed(i);
    }
  i->now.status = 0, i->known = RATES;
  return GOOD;
}

/* Products of the derivatives of rates and outputs by states and inputs with a vector; `forward` from states and inputs. */
static int product(Instance *i, const unsigned *unknowns, size_t nu, const unsigned *knowns, size_t nk, const double *seed,
                   double *value, int forward) {
  enum { IN = N_X + N_U, OUT = N_RATE + N_Y };
  double in[IN + 1], out[OUT + 1];
  const unsigned *from = forward ? knowns : unknowns, *to = forward ? unknowns : knowns;
  const size_t given = forward ? nk : nu, asked = forward ? nu : nk;
  memset(in, 0, sizeof in), memset(out, 0, sizeof out);
  double direct[N_X + 1]; /* of states that are outputs themselves */
  memset(direct, 0, sizeof direct);
  for (size_t j = 0; j < given; j++) {
    const unsigned r = from[j];
    if (forward) {
      if (r >= FIRST_X && r < FIRST_RATE) in[r - FIRST_X] += seed[j];
      else if (r >= FIRST_U && r < FIRST_P) in[N_X + r - FIRST_U] += seed[j];
      else return refuse(i, "derivatives are known by states and inputs only");
    } else {
      if (r >= FIRST_RATE && r < FIRST_SIDE) out[r - FIRST_RATE] += seed[j];
      else if (r >= FIRST_X && r < FIRST_RATE) direct[r - FIRST_X] += seed[j];
      else return refuse(i, "derivatives are known of rates and outputs only");
    }
  }
  evaluated(forward ? TANGENT : ADJOINT, i, i->now.x, forward ? in : out, forward ? IN : OUT, forward ? out : in);
  for (size_t j = 0; j < asked; j++) {
    const unsigned r = to[j];
    if (forward) {
      if (r >= FIRST_RATE && r < FIRST_SIDE) value[j] = out[r - FIRST_RATE];
      else if (r >= FIRST_X && r < FIRST_RATE) {
        value[j] = 0.0;
        for (size_t k = 0; k < given; k++) value[j] += from[k] == r ? seed[k] : 0.0;
      } else return refuse(i, "derivatives are known of rates and outputs only");
    } else {
      if (r >= FIRST_X && r < FIRST_RATE) value[j] = in[r - FIRST_X] + direct[r - FIRST_X];
      else if (r >= FIRST_U && r < FIRST_P) value[j] = in[N_X + r - FIRST_U];
      else return refuse(i, "derivatives are known by states and inputs only");
    }
  }
  return GOOD;
}

/* Whether the state has left the constraints so far that it has to be put back onto them. */
static int has_drifted(Instance *i) {
  const Machine now = i->now;
  double violation = 0.0;
  const double change = onto_constraints(i, &violation);
  i->now = now, i->known = 0;
  return change > MOST_DRIFT;
}

enum { SWITCHES = 1, PASSES = 2 };
#if EVENTFUL
enum { NEXT = N_RATE, DUE = NEXT + N_SWITCHED, ACTIVE = DUE + 1, AWAY = ACTIVE + N_CONDITIONS, UNKNOWN = AWAY + N_ARRIVING };

/* Whether a parameter takes another value at an instant: once, since rounding would make it jump back at the edge of a condition. */
static int switches(const Machine *now, double instant, const double *to, int j) {
  return STEPWISE[j] && now->jumped[j] != instant && to[NEXT + j] == to[NEXT + j] && to[NEXT + j] != now->p[SWITCHED[j]];
}

/* Gives parameters their next values: those that change gradually, and those that jump if `all` do. Returns whether any jumps. */
static int follow(Instance *i, double instant, const double *to, int all) {
  Machine *now = &i->now;
  int any = 0;
  for (int j = 0; j < N_SWITCHED; j++) {
    const int jumps = switches(now, instant, to, j);
    any |= jumps;
    if (STEPWISE[j] ? !jumps || !all : to[NEXT + j] != to[NEXT + j]) continue;
    if (jumps) now->jumped[j] = instant;
    now->p[SWITCHED[j]] = now->x[SWITCHED_AT + j] = to[NEXT + j], i->known = 0;
  }
  return any;
}

/* Whether the importer has passed an event; turns of closures are counted. */
static int passed(Instance *i) {
  double to[UNKNOWN + 2];
  evaluated(JUMP, i, i->now.x, NULL, 0, to);
  return follow(i, i->now.t, to, 0) || to[DUE] != 0.0;
}

/* One round of an event: parameters that switch, constraints that begin or cease to act, impacts. Returns which does, -1 after a
   fault. Importers find events where numbers are just equal: what follows is told by the state that the motion reaches a
   little later, and where constraints change or parts rebound, it is this state that goes on. */
static int jump(Instance *i, double instant) {
  Machine *now = &i->now;
  double here[UNKNOWN + 2], to[UNKNOWN + 2], ahead[N_X];
  const double t = now->t, later = AHEAD * STEP_LENGTH + 64 * EPS * FABS(t);
  if (!(i->known & RATES) && find(i, RATES) != GOOD) return -1;
  memcpy(ahead, now->x, sizeof ahead);
  for (int k = 0; k < N_RATE; k++) ahead[k] += later * i->found[k];
  evaluated(JUMP, i, now->x, NULL, 0, here);
  now->t = t + later;
  evaluated(JUMP, i, ahead, NULL, 0, to);
  const int struck = to[DUE] != 0.0;
  int passes = struck;
  for (int j = 0; j < N_CONDITIONS; j++) passes |= to[ACTIVE + j] != here[ACTIVE + j];
  if (passes) memcpy(now->x, struck ? to : ahead, N_RATE * sizeof(double)), i->known = 0;
  else now->t = t;
  for (int j = 0; j < N_ARRIVING; j++)
    if ((passes ? to : here)[AWAY + j] != 0.0) now->status = ARRIVING_FAULT + j;
  if (to[UNKNOWN] != 0.0) now->status = UNDEFINED_FAULT;
  if (now->status) return failed(i), -1;
  return (follow(i, instant, to, 1) ? SWITCHES : 0) | (passes ? PASSES : 0);
}
#else
static int passed(Instance *i) { return 0; }
static int jump(Instance *i, double instant) { return 0; }
#endif

/* In an event: all that is due; `moved` tells whether states have changed. */
static int happen(Instance *i, int *moved) {
  const double t = i->now.t;
  *moved = !EVENTFUL && has_drifted(i);
  if (*moved) settled(i);
  if (take(i) != GOOD) return WRONG;
  for (int round = 0, goes_on = EVENTFUL; goes_on; round++) {
    const int found = jump(i, t), drifted = !(found & SWITCHES) && has_drifted(i); /* first whether a constraint is far away */
    if (found < 0) return WRONG;
    if (found && round == MOST_AT_ONCE) return i->now.status = EVENTS_FAULT, failed(i);
    if (drifted) settled(i);
    *moved |= drifted || found & PASSES, goes_on = found || (drifted && round < MOST_AT_ONCE);
  }
  if (i->now.t != t) i->now.t = t, i->known = 0;
  return GOOD;
}

static int set_states(Instance *i, const double *x, size_t n) {
  if (n != N_RATE) return refuse(i, "another number of states is needed");
  memcpy(i->now.x, x, sizeof(double) * N_RATE), i->known = 0;
  return GOOD;
}

static int states(Instance *i, double *x, size_t n) {
  if (n != N_RATE) return refuse(i, "another number of states is needed");
  memcpy(x, i->now.x, sizeof(double) * N_RATE);
  return GOOD;
}

static int rates(Instance *i, double *rate, size_t n) {
  if (n != N_RATE) return refuse(i, "another number of states is needed");
  if (!(i->known & RATES) && find(i, RATES) != GOOD) return DISCARD;
  memcpy(rate, i->found, sizeof(double) * N_RATE);
  return GOOD;
}

static int sides(Instance *i, double *side, size_t n) {
  if (n != N_SIDE) return refuse(i, "another number of event indicators is needed");
  if (n && !(i->known & RATES) && find(i, RATES) != GOOD) return DISCARD;
  memcpy(side, i->found + N_RATE + N_Y, sizeof(double) * N_SIDE);
  return GOOD;
}

static int nominals(double *nominal, size_t n) {
  for (size_t j = 0; j < n; j++) nominal[j] = 1.0;
  return GOOD;
}
