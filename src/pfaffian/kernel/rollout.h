/* The time loop. A lane that fails is frozen at its last good state; nothing spreads to the lanes beside it. */
typedef struct {
  Port x0, u, p, x, records;            /* u: element of one sample; records: element of one record */
  int64_t u_sample, record;             /* doubles between samples, between records */
  int64_t batch, samples, first, steps, every, last, linear, stride;
  int32_t *status;
  int64_t *stopped;
  double t0, h, limit;
} Rollout;

#define NX STEP_IN[0]
#define NU STEP_IN[1]
#define NP STEP_IN[3]
#define NF STEP_OUT[1]
#define NY OBSERVE_OUT_TOTAL

/* Input at node j, the time t0 + j h. */
static void input_at(const Rollout *r, int64_t j, int64_t b, V *u, V *next) {
  const int64_t last = r->samples - 1, i = j / r->stride;
  Port sample = r->u;
  sample.data += (i < last ? i : last) * r->u_sample;
  read_port(&sample, NU, b, r->batch, u);
  if (!r->linear || i >= last || j % r->stride == 0) return;
  sample.data += r->u_sample;
  read_port(&sample, NU, b, r->batch, next);
  const double fraction = (double)(j % r->stride) / (double)r->stride;
  for (int k = 0; k < NU; k++) u[k] = u[k] + K(fraction) * (next[k] - u[k]);
}

static void record(const Rollout *r, int64_t b, int64_t index, I running, V *y) {
  Port place = r->records;
  place.data += index * r->record;
  for (int i = 0; i < NY; i++) y[i] = SEL(running, y[i], K(__builtin_nan("")));
  write_port(&place, NY, b, r->batch, y);
}

/* 0 good, 1 state not finite or beyond the limit, 2 + i fault i. A fault that is a number is the better reason. */
static V verdict(const V *x, const V *fault, V limit) {
  I good = KI(-1);
  for (int i = 0; i < NX; i++) good = good & LE(FABS(x[i]), limit);
  V code = SEL(good, K(0.0), K(1.0));
  for (int i = NF - 1; i >= 0; i--)
    code = SEL(NE(fault[i], K(0.0)) & (good | EQ(fault[i], fault[i])), K(2.0 + i), code);
  return code;
}

static void run_block(const Rollout *r, int64_t b, V *w) {
  /* One row of inputs of STEP: x u0 u1 p t h; then its outputs, inputs of OBSERVE x u p t, its outputs, slots. */
  V *const x = w, *const u0 = x + NX, *const u1 = u0 + NU, *const p = u1 + NU, *const t = p + NP, *const h = t + 1;
  V *const next = h + 1, *const fault = next + NX, *const seen = fault + NF, *const y = seen + NX + NU + NP + 1;
  V *const slots = y + NY;
  const int64_t end = r->first + r->steps, room = r->batch - b < W ? r->batch - b : W;
  const V limit = K(r->limit);
  double status[W];
  int64_t stopped[W];
  for (int k = 0; k < W; k++) {
    const int64_t run = b + (k < room ? k : room - 1);
    status[k] = r->status[run], stopped[k] = r->stopped[run];
  }
  V code;
  __builtin_memcpy(&code, status, sizeof code);
  I running = EQ(code, K(0.0));
  read_port(&r->x0, NX, b, r->batch, x);
  read_port(&r->p, NP, b, r->batch, p);
  *h = K(r->h);
  int64_t index = 0;
  for (int64_t k = r->first; k <= end; k++) {
    const int recorded = k % r->every == 0 && (k < end || r->last);
    if (k == end && !recorded) break;
    const double time = r->t0 + (double)k * r->h;
    *t = K(time);
    if (ANY(running)) {
      input_at(r, k, b, u0, u1);
      if (recorded) {
        __builtin_memcpy(seen, x, NX * sizeof(V));
        __builtin_memcpy(seen + NX, u0, NU * sizeof(V));
        __builtin_memcpy(seen + NX + NU, p, (NP + 1) * sizeof(V));
        OBSERVE(seen, y, slots);
      }
    }
    if (recorded) record(r, b, index++, running, y);
    if (k == end) break;
    if (!ANY(running)) continue;
    if (r->linear) input_at(r, k + 1, b, u1, seen);
    else __builtin_memcpy(u1, u0, NU * sizeof(V));
    STEP(x, next, slots);
    const V now = verdict(next, fault, limit);
    const I ok = running & EQ(now, K(0.0)), failing = running & ~ok;
    for (int i = 0; i < NX; i++) x[i] = SEL(ok, next[i], x[i]);
    if (ANY(failing)) {
      code = SEL(failing, now, code);
      const int64_t *lane = (const int64_t *)&failing;
      for (int i = 0; i < W; i++)
        if (lane[i]) stopped[i] = k;
      running = ok;
    }
  }
  write_port(&r->x, NX, b, r->batch, x);
  __builtin_memcpy(status, &code, sizeof code);
  for (int k = 0; k < room; k++) r->status[b + k] = (int32_t)status[k], r->stopped[b + k] = stopped[k];
}

void pfaffian_rollout(const Rollout *r, int64_t begin, int64_t end, V *w) {
  FP_ENTER;
  for (int64_t b = begin; b < end; b += W) run_block(r, b, w);
  FP_LEAVE;
}

/* Two steps, three records. */
void pfaffian_trial(double *in, double *out, V *w) {
  int32_t status[TRIAL_RUNS] = {0};
  int64_t stopped[TRIAL_RUNS] = {0};
  Rollout r = {.batch = TRIAL_RUNS, .samples = 3, .steps = 2, .every = 1, .last = 1, .stride = 1, .linear = 1,
               .status = status, .stopped = stopped, .t0 = 0.125, .h = 0.0078125, .limit = 1e12};
  r.u_sample = NU * TRIAL_RUNS, r.record = NY * TRIAL_RUNS;
  r.x0 = trial_port(&in, NX), r.u = trial_port(&in, 3 * NU), r.p = trial_port(&in, NP);
  r.x = trial_port(&out, NX), r.records = trial_port(&out, 3 * NY);
  pfaffian_rollout(&r, 0, TRIAL_RUNS, w);
  for (int i = 0; i < TRIAL_RUNS; i++) out[i] = status[i];
}
