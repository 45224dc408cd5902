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
