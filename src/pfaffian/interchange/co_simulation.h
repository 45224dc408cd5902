/* Co-simulation: the time loop of rollout.h between two communication points. */
static void loop(Instance *i, int64_t steps, int recorded, Machine *to) {
  const Port x = {i->now.x, N_X, 1}, u = {i->now.u, N_U, 1}, p = {i->now.p, N_P, 1}, end = {to->x, N_X, 1},
             y = {i->found, N_Y, 1}; /* the loop records step 0 in any case, as 0 is a multiple of `every` */
  const Rollout r = {.x0 = x, .u = u, .p = p, .x = end, .records = y, .batch = 1, .samples = 1, .first = i->now.k,
                     .steps = steps, .every = recorded ? 1 : INT64_MAX, .last = recorded, .stride = 1, .sampling = SAMPLING,
                     .status = &to->status, .stopped = &to->stopped, .t0 = i->now.t0, .h = STEP_LENGTH, .limit = LIMIT};
  pfaffian_rollout(NULL, &r, 0, 1, i->work);
}

static int find(Instance *i, int part) {
  Machine unused = i->now; /* samples at this instant belong to the record only; the next step takes them again */
  loop(i, 0, 1, &unused);
  i->known = RATES | OUTPUTS;
  return GOOD;
}

static int do_step(Instance *i, double t, double h, double *reached) {
  Machine *now = &i->now;
  *reached = now->t;
  if (may_step(i, t, 1e-6 * STEP_LENGTH) != GOOD) return WRONG;
  const double count = (t + h - now->t0) / STEP_LENGTH, end = __builtin_floor(count + 0.5), off = count - end;
  if (!(FABS(off) <= 1e-6) || !(end >= (double)now->k) || !(end < 9e15)) {
    char text[160];
    snprintf(text, sizeof text, "a communication step must be a whole number of steps of %.17g s", STEP_LENGTH);
    return refuse(i, text);
  }
  i->known = 0;
  const int64_t steps = (int64_t)end - now->k;
  loop(i, steps, 0, now);
  now->k = now->status ? now->stopped : now->k + steps;
  now->t = now->t0 + (double)now->k * STEP_LENGTH;
  *reached = now->t;
  return now->status ? failed(i) : GOOD;
}
