/* The time loop. A lane that fails is frozen at its last good state and does not affect other lanes. The blocks of a tile
   advance together; a block leaves the tile when all its lanes have stopped or, where this is asked for, a step has moved none. */
typedef struct {
  Port x0, u, p, x, records;            /* u: element of one sample; records: element of one record */
  int64_t u_sample, record;             /* doubles between samples, between records */
  int64_t batch, count, samples, first, steps, every, last, linear, stride;
  int64_t chooser;                      /* 1 + index of the entry of x that tells which sample a run takes, or 0 */
  int64_t until_still;                  /* whether runs end that a step leaves as they are */
  const int64_t *sampling;              /* period and phase of each sampler, in steps */
  int32_t *status;
  int64_t *stopped;
  double t0, h, limit;
  double *parts;                        /* of a single run, or 0: rows [k, x] before each part of a step of several, and after it */
  int64_t room, *noted;                 /* number of rows that there is room for, and of all rows */
} Rollout;

#define NX STEP_IN[0]
#define MOVING STEP_OUT[0] /* number of the first entries of x, which a step changes; it leaves the others alone */
#define NU STEP_IN[1]
#define NP STEP_IN[3]
#define NF STEP_OUT[1]
#define UNFINISHED (STEP_OUT_TOTAL - MOVING - NF) /* 1 if a step says whether it goes on in another call, else 0 */
#define NY OBSERVE_OUT_TOTAL
#ifndef SAMPLER
static Program *const SAMPLER_PROGRAM[] = SAMPLERS;
static const int SAMPLER_NF[] = SAMPLER_FAULTS;
#define SAMPLER(j) SAMPLER_PROGRAM[j]
#endif

/* The inputs of runs that choose their samples, by these numbers. */
static void chosen_input(const Rollout *r, int64_t b, const V *numbers, V *u) {
  double number[W], *const lane = (double *)u, last = (double)(r->samples - 1);
  __builtin_memcpy(number, numbers, sizeof number);
  for (int j = 0; j < W; j++) {
    const int64_t run = b + j < r->batch ? b + j : r->batch - 1;
    const int64_t i = number[j] > 0.0 ? (int64_t)(number[j] < last ? number[j] : last) : 0; /* 0 for nan */
    const double *const sample = r->u.data + i * r->u_sample + run * r->u.run;
    for (int k = 0; k < NU; k++) lane[k * W + j] = sample[k * r->u.element];
  }
}

/* The inputs at the time t0 + j h, or those that runs in the states x choose. */
static void input_at(const Rollout *r, int64_t j, int64_t b, const V *x, V *u, V *next) {
  if (r->chooser) {
    chosen_input(r, b, x + r->chooser - 1, u);
    return;
  }
  const int64_t last = r->samples - 1, i = j / r->stride;
  Port sample = r->u;
  sample.data += (i < last ? i : last) * r->u_sample;
  read_port(&sample, NU, b, 1, r->batch, u);
  if (!r->linear || i >= last || j % r->stride == 0) return;
  sample.data += r->u_sample;
  read_port(&sample, NU, b, 1, r->batch, next);
  const double fraction = (double)(j % r->stride) / (double)r->stride;
  for (int k = 0; k < NU; k++) u[k] = u[k] + K(fraction) * (next[k] - u[k]);
}

/* W runs from `run` on: their status codes, the masks of those that are running, of those whose step goes on and of those that
   the step moved, the steps at which the others stopped. */
typedef struct {
  int64_t run;
  V code;
  I running, open, moved;
  int64_t stopped[W];
} Block;

static inline int64_t lanes_of(const Rollout *r, const Block *block) {
  return r->batch - block->run < W ? r->batch - block->run : W;
}

static void enter(const Rollout *r, Block *block, V *x, V *p, V *h) {
  const int64_t room = lanes_of(r, block);
  double status[W];
  for (int k = 0; k < W; k++) {
    const int64_t run = block->run + (k < room ? k : room - 1);
    status[k] = r->status[run], block->stopped[k] = r->stopped[run];
  }
  __builtin_memcpy(&block->code, status, sizeof status);
  block->running = block->moved = EQ(block->code, K(0.0));
  read_port(&r->x0, NX, block->run, 1, r->batch, x);
  read_port(&r->p, NP, block->run, 1, r->batch, p);
  *h = K(r->h);
}

/* Writes the record of `count` neighbouring blocks; nan for runs that have stopped. */
static void record(const Rollout *r, const Block *block, int64_t count, int64_t index, V *y) {
  Port place = r->records;
  place.data += index * r->record;
  for (int64_t k = 0; k < count; k++)
    for (int i = 0; i < NY; i++) y[k * FRAME + i] = SEL(block[k].running, y[k * FRAME + i], K(__builtin_nan("")));
  write_port(&place, NY, block->run, count, r->batch, y);
}

/* Writes the last good states and the status of a block, and nan into its records from index on. */
static void leave(const Rollout *r, Block *block, int64_t index, const V *x, V *y) {
  double status[W];
  write_port(&r->x, NX, block->run, 1, r->batch, x);
  __builtin_memcpy(status, &block->code, sizeof status);
  for (int k = 0; k < lanes_of(r, block); k++)
    r->status[block->run + k] = (int32_t)status[k], r->stopped[block->run + k] = block->stopped[k];
  for (; index < r->count; index++) record(r, block, 1, index, y);
}

/* Status of each lane: 0 good, 1 state not finite or beyond the limit, first + i for fault i. A fault that is a number takes
   precedence over status 1. */
static V verdict(const V *x, int n, const V *fault, int nf, int first, V limit) {
  I good = KI(-1);
  for (int i = 0; i < n; i++) good = good & LE(FABS(x[i]), limit);
  V code = SEL(good, K(0.0), K(1.0));
  for (int i = nf - 1; i >= 0; i--)
    code = SEL(NE(fault[i], K(0.0)) & (good | EQ(fault[i], fault[i])), K((double)(first + i)), code);
  return code;
}

/* Accepts the next n entries of the state in those lanes `of` the block where they are good; others of these lanes stop with a
   status. The nf faults follow these entries; the first of them has the status `first`. */
static void settle(const Rollout *r, Block *block, I of, int64_t k, V *x, const V *next, int n, int nf, int first) {
  const V now = verdict(next, n, next + n, nf, first, K(r->limit));
  const I ok = of & EQ(now, K(0.0)), failing = of & ~ok;
  for (int i = 0; r->until_still && i < n; i++) block->moved = block->moved | (ok & NE(BITS(x[i]), BITS(next[i])));
  for (int i = 0; i < n; i++) x[i] = SEL(ok, next[i], x[i]);
  if (!ANY(failing)) return;
  block->code = SEL(failing, now, block->code);
  block->running = block->running & ~failing;
  int64_t lane[W];
  __builtin_memcpy(lane, &failing, sizeof lane);
  for (int i = 0; i < W; i++)
    if (lane[i]) block->stopped[i] = k;
}

/* Accepts what step k gives in the open lanes of a block; those stay open in which it goes on in another call. */
static void accept(const Rollout *r, Block *block, int64_t k, V *x, const V *next) {
  settle(r, block, block->open, k, x, next, MOVING, NF, 2);
  if (UNFINISHED) block->open = block->open & block->running & NE(next[MOVING + NF], K(0.0));
}

/* Notes the state of a single run in the course of step k; where there is no room left, only that there is one more. */
static void note_part(const Rollout *r, int64_t k, const V *x) {
  if (*r->noted < r->room) {
    double *const row = r->parts + *r->noted * (NX + 1);
    row[0] = (double)k;
    for (int i = 0; i < NX; i++) __builtin_memcpy(row + 1 + i, x + i, sizeof(double));
  }
  ++*r->noted;
}

/* Writes the inputs of an observation or a sampler. */
static inline void look(V *seen, const V *x, const V *u, const V *p) {
  __builtin_memcpy(seen, x, NX * sizeof(V));
  __builtin_memcpy(seen + NX, u, NU * sizeof(V));
  __builtin_memcpy(seen + NX + NU, p, (NP + 1) * sizeof(V)); /* t comes after p */
}

static void run_tile(const double *c, const Rollout *r, int64_t b, int64_t n, V *w) {
  /* A frame: inputs of STEP (x u0 u1 p t h), its outputs, inputs of OBSERVE (x u p t), its outputs, outputs of a sampler, a
     copy of the KEPT entries of x that samplers change, slots. */
  V *const x = w, *const u0 = x + NX, *const u1 = u0 + NU, *const p = u1 + NU, *const t = p + NP, *const h = t + 1;
  V *const next = h + 1, *const seen = next + STEP_OUT_TOTAL, *const y = seen + NX + NU + NP + 1;
  V *const sampled = y + NY, *const kept = sampled + SAMPLER_OUT, *const slots = kept + KEPT;
  const int64_t end = r->first + r->steps, entered = n;
  int64_t index = 0;
  Block blocks[TILE];
  for (int64_t i = 0; i < n; i++) {
    blocks[i].run = b + i * W;
    enter(r, blocks + i, x + i * FRAME, p + i * FRAME, h + i * FRAME);
  }
  for (int64_t k = r->first;; k++) {
    for (int64_t i = n - 1; i >= 0; i--) {
      const I going = blocks[i].running & blocks[i].moved;
      if (r->until_still) blocks[i].moved = KI(0);
      if (ANY(going)) continue;
      leave(r, blocks + i, index, x + i * FRAME, y + i * FRAME);
      blocks[i] = blocks[--n];
      __builtin_memmove(w + i * FRAME, w + n * FRAME, STEP_IN_TOTAL * sizeof(V));
    }
    const int recorded = k % r->every == 0 && (k < end || r->last);
    if (n == 0 || (k == end && !recorded)) break;
    const double time = r->t0 + (double)k * r->h;
    for (int64_t i = 0, f = 0; i < n; i++, f += FRAME) {
      t[f] = K(time);
      input_at(r, k, blocks[i].run, x + f, u0 + f, u1 + f);
      /* Samples at the end affect its record only: a call that continues from here takes them again. */
      if (k == end) __builtin_memcpy(kept + f, x + f, KEPT * sizeof(V));
    }
    for (int j = 0, first = 2 + NF; j < N_SAMPLERS; first += SAMPLER_NF[j++]) {
      const int64_t period = r->sampling[2 * j], phase = r->sampling[2 * j + 1];
      if (k < phase || (k - phase) % period != 0) continue;
      for (int64_t i = 0, f = 0; i < n; i++, f += FRAME) look(seen + f, x + f, u0 + f, p + f);
      SAMPLER(j)(seen, sampled, slots, c, n * FRAME);
      for (int64_t i = 0, f = 0; i < n; i++, f += FRAME)
        settle(r, blocks + i, blocks[i].running, k, x + f, sampled + f, KEPT, SAMPLER_NF[j], first);
    }
    if (recorded) {
      for (int64_t i = 0, f = 0; i < n; i++, f += FRAME) look(seen + f, x + f, u0 + f, p + f);
      OBSERVE(seen, y, slots, c, n * FRAME);
      if (n == entered) record(r, blocks, n, index, y);
      else for (int64_t i = 0; i < n; i++) record(r, blocks + i, 1, index, y + i * FRAME);
      index++;
    }
    if (k == end) {
      for (int64_t i = 0, f = 0; i < n; i++, f += FRAME) __builtin_memcpy(x + f, kept + f, KEPT * sizeof(V));
      break;
    }
    for (int64_t i = 0, f = 0; i < n; i++, f += FRAME) {
      if (r->linear) input_at(r, k + 1, blocks[i].run, x + f, u1 + f, seen + f);
      else __builtin_memcpy(u1 + f, u0 + f, NU * sizeof(V));
    }
    for (int64_t i = 0; i < n; i++) blocks[i].open = blocks[i].running;
    STEP(x, next, slots, c, n * FRAME);
    for (int64_t i = 0, f = 0; i < n; i++, f += FRAME) {
      const int noted = r->parts && UNFINISHED && ANY(blocks[i].open & NE(next[f + MOVING + NF], K(0.0)));
      if (noted) note_part(r, k, x + f);
      accept(r, blocks + i, k, x + f, next + f);
      while (UNFINISHED && ANY(blocks[i].open)) {
        if (noted) note_part(r, k, x + f);
        STEP(x + f, next + f, slots + f, c, FRAME);
        accept(r, blocks + i, k, x + f, next + f);
      }
      if (noted) note_part(r, k, x + f);
    }
  }
  for (int64_t i = 0; i < n; i++) leave(r, blocks + i, index, x + i * FRAME, y + i * FRAME);
}

#ifndef __CUDACC__
void pfaffian_rollout(const double *c, const Rollout *r, int64_t begin, int64_t end, V *w) {
  const int64_t blocks = (end - begin + W - 1) / W, tile = tile_size(blocks);
  FP_ENTER;
  for (int64_t done = 0; done < blocks; done += tile)
    run_tile(c, r, begin + done * W, blocks - done < tile ? blocks - done : tile, w);
  FP_LEAVE;
}

/* The trial: the step, the observation, the samplers, and one step of the loop with two records, in which all samplers are
   called at each step. */
void pfaffian_trial(const double *c, double *in, double *out, V *w) {
  FP_ENTER;
  TRY(STEP, c, &in, &out, w);
  TRY(OBSERVE, c, &in, &out, w);
  int64_t sampling[2 * N_SAMPLERS + 1];
  for (int j = 0; j < N_SAMPLERS; j++) {
    const int sizes[] = {KEPT, SAMPLER_NF[j]};
    try_program(SAMPLER(j), c, OBSERVE_IN, OBSERVE_N_IN, sizes, 2, &in, &out, w);
    sampling[2 * j] = 1, sampling[2 * j + 1] = 0;
  }
  FP_LEAVE;
  int32_t status[TRIAL_RUNS] = {0};
  int64_t stopped[TRIAL_RUNS] = {0};
  Rollout r = {.batch = TRIAL_RUNS, .count = 2, .samples = 2, .steps = 1, .every = 1, .last = 1, .stride = 1, .linear = 1,
               .status = status, .stopped = stopped, .t0 = 0.125, .h = 0.0078125, .limit = 1e12, .sampling = sampling};
  r.u_sample = NU * TRIAL_RUNS, r.record = NY * TRIAL_RUNS;
  r.x0 = trial_port(&in, NX), r.u = trial_port(&in, 2 * NU), r.p = trial_port(&in, NP);
  r.x = trial_port(&out, NX), r.records = trial_port(&out, 2 * NY);
  pfaffian_rollout(c, &r, 0, TRIAL_RUNS, w);
  for (int i = 0; i < TRIAL_RUNS; i++) out[i] = status[i];
}
#endif
