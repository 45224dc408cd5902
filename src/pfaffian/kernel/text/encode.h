/* Encodes one Program in groups of one operation, with registers, as `placed` of encode.py does; see there for the words. */
typedef struct {
  int64_t n_steps, n_values, base;
  const int32_t *constants; /* the number of constants, then the register of each */
  const int32_t *callees;   /* for each callee its row in the table and its number of decisions */
} Placing;

/* Steps of one operation that are ready to be placed. stamp: when the first of them became ready. */
typedef struct { int32_t *items, count, room, stamp; } Ready;

/* Adds a step to those that are ready. */
static void append(Ready *q, int32_t item, int32_t *stamp) {
  if (q->count == q->room) {
    q->room = q->room ? 2 * q->room : 16;
    q->items = realloc(q->items, sizeof(int32_t) * (size_t)q->room);
    if (!q->items) abort();
  }
  if (!q->count) q->stamp = (*stamp)++;
  q->items[q->count++] = item;
}

/* The operation with the most ready steps; among equals the one that became ready first; -1 if no step is ready. */
static int longest(const Ready *ready) {
  int best = -1;
  for (int op = 0; op <= CALL; op++) {
    if (!ready[op].count) continue;
    const int more = best < 0 ? 1 : ready[op].count - ready[best].count;
    if (more > 0 || (more == 0 && ready[op].stamp < ready[best].stamp)) best = op;
  }
  return best;
}

/* Writes the steps in the order of their groups, and where each group ends. Returns the number of groups. */
static int64_t grouped(const Step *steps, int64_t n, int64_t n_values, int32_t *order, int32_t *ends) {
  int32_t *const maker = numbers(n_values, -1), *const waits = numbers(n, 0), *const begin = numbers(n + 1, 0);
  int32_t *const last = numbers(n, -1);
  for (int64_t i = 0; i < n; i++)
    for (int32_t k = 0; k < steps[i].width; k++) maker[steps[i].result + k] = (int32_t)i;
  /* The users of each step, each once: counted in the first round, listed in the second. */
  int32_t *users = 0, *at = 0;
  for (int round = 0; round < 2; round++) {
    for (int64_t i = 0; i < n; i++) last[i] = -1;
    for (int64_t i = 0; i < n; i++)
      for (int32_t k = 0; k < steps[i].n; k++) {
        const int32_t j = maker[steps[i].args[k]];
        if (j < 0 || last[j] == (int32_t)i) continue;
        last[j] = (int32_t)i;
        if (round) users[at[j]++] = (int32_t)i, waits[i]++;
        else begin[j + 1]++;
      }
    if (round) break;
    for (int64_t j = 0; j < n; j++) begin[j + 1] += begin[j];
    users = numbers(begin[n], -1), at = numbers(n, 0);
    memcpy(at, begin, sizeof(int32_t) * (size_t)n);
  }
  Ready ready[CALL + 1];
  memset(ready, 0, sizeof ready);
  int32_t stamp = 0, done = 0;
  int64_t groups = 0;
  for (int64_t i = 0; i < n; i++)
    if (!waits[i]) append(&ready[steps[i].op], (int32_t)i, &stamp);
  for (int op; (op = longest(ready)) >= 0;) {
    Ready *const q = &ready[op];
    const int32_t first = done;
    if (op == CALL) order[done++] = q->items[--q->count];
    else {
      memcpy(order + done, q->items, sizeof(int32_t) * (size_t)q->count);
      done += q->count, q->count = 0;
    }
    ends[groups++] = done;
    for (int32_t k = first; k < done; k++)
      for (int32_t u = begin[order[k]]; u < begin[order[k] + 1]; u++)
        if (!--waits[users[u]]) append(&ready[steps[users[u]].op], users[u], &stamp);
  }
  for (int op = 0; op <= CALL; op++) free(ready[op].items);
  free(maker), free(waits), free(begin), free(last), free(users), free(at);
  return groups;
}

/* For each value the last group that makes or reads it; -1 for an output, whose register stays in use. */
static int32_t *last_groups(const Given *g, const Step *steps, const int32_t *order, const int32_t *ends, int64_t groups, int64_t n) {
  int32_t *const last = numbers(n, -1);
  for (int32_t j = 0, k = 0; j < groups; j++)
    for (; k < ends[j]; k++) {
      const Step *const s = &steps[order[k]];
      for (int32_t i = 0; i < s->width; i++) last[s->result + i] = j;
      for (int32_t i = 0; i < s->n; i++) last[s->args[i]] = j;
    }
  for (int64_t i = 0; i < g->n_outputs; i++) last[g->outputs[i]] = -1;
  return last;
}

/* Writes the words, then the registers of the outputs. counts: words before the outputs; registers from `base` on;
   decisions. */
void pfaffian_encode(const Given *g, const Placing *p, int32_t *to, int64_t *counts) {
  const int64_t n = p->n_steps, m = p->n_values;
  Step *const steps = malloc(sizeof(Step) * (size_t)(n + 1));
  if (!steps) abort();
  int64_t i = 0;
  EACH_STEP(s, g) steps[i++] = s;
  int32_t *const order = numbers(n, 0), *const ends = numbers(n, 0), *const begin = to;
  const int64_t groups = grouped(steps, n, m, order, ends);
  int32_t *const last = last_groups(g, steps, order, ends, groups, m), *const dying = numbers(groups + 1, 0);
  int32_t *const made = numbers(m, 0), *const gone = numbers(m, 0), *const free_ones = numbers(m, 0), *const place = numbers(m, -1);
  for (int64_t v = g->first; v < m; v++)
    if (last[v] >= 0) dying[last[v] + 1]++;
  for (int64_t j = 0; j < groups; j++) dying[j + 1] += dying[j];
  /* For each group the values whose registers become free after it, in the order in which they were made. */
  int32_t *const at = numbers(groups, 0);
  memcpy(at, dying, sizeof(int32_t) * (size_t)groups);
  int64_t n_made = 0;
  for (int64_t k = 0; k < n; k++)
    for (int32_t r = 0; r < steps[order[k]].width; r++) made[n_made++] = steps[order[k]].result + r;
  for (int64_t k = 0; k < n_made; k++)
    if (last[made[k]] >= 0) gone[at[last[made[k]]]++] = made[k];
  const int64_t n_constants = p->constants[0], n_in = g->first - n_constants;
  for (int64_t v = 0; v < n_in; v++) place[v] = (int32_t)(p->base + v);
  for (int64_t c = 0; c < n_constants; c++) place[n_in + c] = p->constants[1 + c];
  int32_t count = (int32_t)(p->base + n_in), n_free = 0;
  for (int32_t j = 0, k = 0; j < groups; j++) {
    const Step *const first = &steps[order[k]];
    if (first->op == CALL) {
      *to++ = CALL, *to++ = p->callees[2 * first->callee], *to++ = first->times;
      for (int32_t a = 0; a < first->n; a++) *to++ = place[first->args[a]];
    } else {
      *to++ = first->op, *to++ = ends[j] - k;
    }
    for (; k < ends[j]; k++) {
      const Step *const s = &steps[order[k]];
      for (int32_t r = 0; r < s->width; r++) *to++ = place[s->result + r] = n_free ? free_ones[--n_free] : count++;
      for (int32_t a = 0; s->op != CALL && a < s->n; a++) *to++ = place[s->args[a]];
    }
    for (int32_t d = dying[j]; d < dying[j + 1]; d++) free_ones[n_free++] = place[gone[d]];
  }
  *to++ = END;
  counts[0] = to - begin, counts[1] = count - p->base;
  for (int64_t o = 0; o < g->n_outputs; o++) *to++ = place[g->outputs[o]];
  counts[2] = 0;
  for (int64_t k = 0; k < n; k++) {
    const Step *const s = &steps[k];
    counts[2] += s->op == CALL ? (int64_t)(s->times < 0 ? 1 : s->times < TURNS ? s->times : TURNS) * p->callees[2 * s->callee + 1] : DECIDES[s->op];
  }
  free(steps), free(order), free(ends), free(last), free(dying), free(made), free(gone), free(free_ones), free(place), free(at);
}
