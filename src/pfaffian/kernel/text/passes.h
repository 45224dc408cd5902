/* The passes of `program/` in C. The words of a Program are, for each step, its operation and the numbers of its arguments;
   for a call CALL, callee, times and arguments. Results are numbered in order, after the inputs and the constants. A pass
   writes the words of the new Program and renumbers the outputs. The function of the same name in Python specifies it. */
typedef struct {
  int64_t first, zero, n_words, n_outputs; /* first result; number of the constant 0.0, or -1 */
  const int32_t *sizes;                    /* for each callee its numbers of inputs and outputs */
  const int32_t *words;
  int32_t *outputs;
} Given;

typedef struct {
  int32_t op, callee, times, n, width, result;
  const int32_t *args, *next;
} Step;

typedef struct {
  int32_t *number; /* value of the given Program -> value of the new Program */
  int32_t *to;     /* where the next word is written */
  int32_t known;   /* the next result */
} New;

/* The step that begins at a word. */
static Step step_at(const Given *g, const int32_t *at, int32_t result) {
  Step s = {.op = *at, .callee = -1, .times = 1, .result = result};
  if (s.op == CALL)
    s.callee = at[1], s.times = at[2], s.args = at + 3, s.n = g->sizes[2 * at[1]], s.width = g->sizes[2 * at[1] + 1];
  else
    s.args = at + 1, s.n = ARITY[s.op], s.width = RESULTS[s.op];
  s.next = s.args + s.n;
  return s;
}

#define EACH_STEP(s, g)                                                                           \
  for (Step s = {.next = (g)->words, .width = (int32_t)(g)->first};                               \
       s.next < (g)->words + (g)->n_words && (s = step_at(g, s.next, s.result + s.width), 1);)

/* The number of values of the Program. */
static int64_t values_of(const Given *g) {
  int64_t n = g->first;
  EACH_STEP(s, g) n += s.width;
  return n;
}

/* A new array of n numbers, all equal to `value`; the caller frees it. */
static int32_t *numbers(int64_t n, int32_t value) {
  int32_t *const room = malloc(sizeof(int32_t) * (size_t)(n + 1));
  if (!room) abort();
  for (int64_t i = 0; i < n; i++) room[i] = value;
  return room;
}

/* A Program without steps, with the inputs and constants of the given one. */
static New new_program(const Given *g, int32_t *to) {
  New p = {numbers(values_of(g), -1), to, (int32_t)g->first};
  for (int32_t v = 0; v < g->first; v++) p.number[v] = v;
  return p;
}

/* Renumbers the outputs; returns the number of words. */
static int64_t finished(const Given *g, New *p, int32_t *begin) {
  for (int64_t i = 0; i < g->n_outputs; i++) g->outputs[i] = p->number[g->outputs[i]];
  free(p->number);
  return p->to - begin;
}

/* Writes a step whose arguments are values of the new Program; returns its first result. */
static int32_t put(New *p, int32_t op, int32_t width, int32_t n, const int32_t *args) {
  *p->to++ = op;
  for (int32_t i = 0; i < n; i++) *p->to++ = args[i];
  p->known += width;
  return p->known - width;
}

/* Writes a step of the given Program, but with these arguments (values of the given Program) and this number of iterations. */
static void keep_with(New *p, const Step *s, const int32_t *args, int32_t times) {
  *p->to++ = s->op;
  if (s->op == CALL) *p->to++ = s->callee, *p->to++ = times;
  for (int32_t i = 0; i < s->n; i++) *p->to++ = p->number[args[i]];
  for (int32_t k = 0; k < s->width; k++) p->number[s->result + k] = p->known++;
}

/* Writes a step of the given Program. */
static void keep(New *p, const Step *s) { keep_with(p, s, s->args, s->times); }

/* For each value, whether the first n outputs need it or another result of the step that makes it. */
static int32_t *needed_by(const Given *g, int64_t n_outputs) {
  const int64_t n = values_of(g);
  int32_t *const needed = numbers(n, 0), *const start = numbers(n, -1);
  for (int64_t i = 0; i < n_outputs; i++) needed[g->outputs[i]] = 1;
  EACH_STEP(s, g) start[s.result] = (int32_t)(s.args - g->words) - (s.op == CALL ? 3 : 1);
  for (int64_t v = n - 1; v >= g->first; v--) {
    if (start[v] < 0) continue;
    const Step s = step_at(g, g->words + start[v], (int32_t)v);
    int32_t used = 0;
    for (int32_t k = 0; k < s.width; k++) used |= needed[v + k];
    for (int32_t k = 0; k < s.width; k++) needed[v + k] = used;
    for (int32_t i = 0; used && i < s.n; i++) needed[s.args[i]] = 1;
  }
  free(start);
  return needed;
}

static int64_t prune(const Given *g, int32_t *to) {
  int32_t *const needed = needed_by(g, g->n_outputs);
  New p = new_program(g, to);
  EACH_STEP(s, g) if (s.width && needed[s.result]) keep(&p, &s);
  free(needed);
  return finished(g, &p, to);
}

static int same_words(const int32_t *a, const int32_t *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (a[i] != b[i]) return 0;
  return 1;
}

static uint64_t hash_of(const int32_t *words, int64_t n, int commutes) {
  uint64_t h = 1469598103934665603u;
  for (int64_t i = 0; i < n; i++) {
    const int64_t k = commutes && words[1] > words[2] && i ? 3 - i : i; /* a + b and b + a in the same order */
    h = (h ^ (uint32_t)words[k]) * 1099511628211u;
    h ^= h >> 29;
  }
  return h;
}

/* Simplifies an operation whose arguments a are values of the new Program: returns the value that it is equal to, or -1, after
   which the operation and its arguments may be simpler. */
static int32_t folded(int32_t zero, int32_t *op, int32_t *a) {
  if (!FOLDS[*op]) return -1;
  const int sum = *op == ADD || *op == SUB, first = zero >= 0 && a[0] == zero;
  const int second = zero >= 0 && ARITY[*op] == 2 && a[1] == zero;
  if ((first && !sum) || (second && *op == MUL)) return zero;
  if (!sum && *op != MUL) return -1;
  if (second) return a[0];
  if (first && *op == ADD) return a[1];
  if (first) {
    *op = NEG, a[0] = a[1];
  } else if (a[0] == a[1] && *op == SUB) {
    return zero;
  } else if (a[0] == a[1]) {
    *op = *op == ADD ? TWICE : SQ;
  }
  return -1;
}

static int64_t merge_or_simplify(const Given *g, int32_t *to, int fold) {
  int64_t steps = 0, size = 16;
  EACH_STEP(s, g) steps += s.width >= 0;
  while (size < 2 * steps) size *= 2;
  int32_t *const where = numbers(size, -1), *const made = numbers(size, -1); /* by hash: first word, first result */
  New p = new_program(g, to);
  EACH_STEP(s, g) {
    int32_t *const begin = p.to, known = p.known;
    keep(&p, &s);
    if (fold && s.op != CALL) {
      const int32_t value = folded((int32_t)g->zero, begin, begin + 1);
      if (value >= 0) {
        p.number[s.result] = value, p.to = begin, p.known = known;
        continue;
      }
      p.to = begin + 1 + ARITY[*begin];
    }
    const int64_t n = p.to - begin;
    const int commutes = *begin != CALL && COMMUTES[*begin];
    int64_t at = (int64_t)(hash_of(begin, n, commutes) & (uint64_t)(size - 1));
    for (; where[at] >= 0; at = (at + 1) & (size - 1)) {
      const int32_t *const other = to + where[at];
      if (other + n > begin || *other != *begin) continue;
      const int swapped = commutes && other[1] == begin[2] && other[2] == begin[1];
      if (swapped || same_words(other, begin, n)) break;
    }
    if (where[at] < 0) {
      where[at] = (int32_t)(begin - to), made[at] = known;
      continue;
    }
    for (int32_t k = 0; k < s.width; k++) p.number[s.result + k] = made[at] + k;
    p.to = begin, p.known = known;
  }
  free(where), free(made);
  return finished(g, &p, to);
}

static int64_t merge(const Given *g, int32_t *to) { return merge_or_simplify(g, to, 0); }
static int64_t simplify(const Given *g, int32_t *to) { return merge_or_simplify(g, to, 1); }

static int64_t share_reciprocals(const Given *g, int32_t *to) {
  const int64_t n = values_of(g);
  int32_t *const uses = numbers(n, 0), *const reciprocal = numbers(n, -1);
  EACH_STEP(s, g) if (s.op == DIV || s.op == INV) uses[s.args[s.n - 1]]++;
  New p = new_program(g, to);
  EACH_STEP(s, g) {
    const int32_t y = s.op == DIV || s.op == INV ? s.args[s.n - 1] : -1;
    if (y < 0 || uses[y] < 2) {
      keep(&p, &s);
      continue;
    }
    if (reciprocal[y] < 0) reciprocal[y] = put(&p, INV, 1, 1, &p.number[y]);
    const int32_t args[] = {p.number[s.args[0]], reciprocal[y]};
    p.number[s.result] = s.op == INV ? reciprocal[y] : put(&p, MUL, 1, 2, args);
  }
  free(uses), free(reciprocal);
  return finished(g, &p, to);
}

/* The arguments of the step that makes the value, if it is this operation; else 0. */
static const int32_t *args_if(const Given *g, const int32_t *start, int32_t value, int32_t op) {
  return start[value] >= 0 && g->words[start[value]] == op ? g->words + start[value] + 1 : 0;
}

static int64_t select_one(const Given *g, int32_t *to) {
  int32_t *const start = numbers(values_of(g), -1);
  EACH_STEP(s, g) if (s.op != CALL) start[s.result] = (int32_t)(s.args - 1 - g->words);
  New p = new_program(g, to);
  EACH_STEP(s, g) {
    const int32_t *parts[2] = {0, 0};
    for (int k = 0; s.op == ADD && k < 2; k++) parts[k] = args_if(g, start, s.args[k], IF_ELSE_ZERO);
    int32_t value = -1;
    for (int k = 0; parts[0] && parts[1] && value < 0 && k < 2; k++) {
      const int32_t *const yes = parts[k], *const no = parts[1 - k], *const other = args_if(g, start, no[0], NOT);
      const int32_t args[] = {p.number[yes[0]], p.number[yes[1]], p.number[no[1]]};
      if (other && other[0] == yes[0]) value = put(&p, SELECT, 1, 3, args);
    }
    if (value < 0) keep(&p, &s);
    else p.number[s.result] = value;
  }
  free(start);
  return finished(g, &p, to);
}

static int64_t pair(const Given *g, int32_t *to) {
  const int64_t n = values_of(g);
  int32_t *const found = numbers(n, 0), *const pairs = numbers(n, -1);
  EACH_STEP(s, g) {
    if (s.op == SIN) found[s.args[0]] |= 1;
    if (s.op == COS) found[s.args[0]] |= 2;
  }
  New p = new_program(g, to);
  EACH_STEP(s, g) {
    if ((s.op != SIN && s.op != COS) || found[s.args[0]] != 3) {
      keep(&p, &s);
      continue;
    }
    const int32_t x = s.args[0];
    if (pairs[x] < 0) pairs[x] = put(&p, SINCOS, 2, 1, &p.number[x]);
    p.number[s.result] = pairs[x] + (s.op == COS);
  }
  free(found), free(pairs);
  return finished(g, &p, to);
}

/* Whether the call continues the chain that ends with `before`: it takes all results of that, which no other step uses, and
   the same further arguments. */
static int continues(const Step *s, const Step *before, const int32_t *uses) {
  if (before->callee != s->callee || s->times != 1 || s->n < s->width) return 0;
  for (int32_t k = 0; k < s->width; k++)
    if (s->args[k] != before->result + k || uses[s->args[k]] != 1) return 0;
  return same_words(s->args + s->width, before->args + s->width, s->n - s->width);
}

static int64_t roll(const Given *g, int32_t *to) {
  const int64_t n = values_of(g);
  int32_t *const uses = numbers(n, 0), *const start = numbers(n, -1), *const times = numbers(n, 0);
  EACH_STEP(s, g) for (int32_t i = 0; i < s.n; i++) uses[s.args[i]]++;
  for (int64_t i = 0; i < g->n_outputs; i++) uses[g->outputs[i]]++;
  EACH_STEP(s, g) { /* start: first argument of a chain's first call, indexed by the first result of its last call */
    if (s.op != CALL || !s.width) continue;
    start[s.result] = (int32_t)(s.args - g->words), times[s.result] = s.times;
    const int32_t v = s.n ? s.args[0] : 0;
    if (!s.n || start[v] < 0) continue;
    Step before = step_at(g, g->words + start[v] - 3, v);
    if (!continues(&s, &before, uses)) continue;
    start[s.result] = start[v], times[s.result] = times[v] + 1, times[v] = 0;
  }
  New p = new_program(g, to);
  EACH_STEP(s, g) {
    if (s.op != CALL || !s.width) keep(&p, &s);
    else if (times[s.result]) keep_with(&p, &s, g->words + start[s.result], times[s.result]);
  }
  free(uses), free(start), free(times);
  return finished(g, &p, to);
}

/* Writes the steps that the first `count` outputs do not need. The values that they need of the other steps become inputs,
   after the given ones, and are listed in `crossing` after their number, crossing[0]. The other outputs are renumbered. */
int64_t pfaffian_tail(const Given *g, int64_t n_in, int64_t count, int32_t *crossing, int32_t *to) {
  const int64_t n = values_of(g);
  int32_t *const head = needed_by(g, count), *const crosses = numbers(n, 0);
  for (int64_t v = 0; v < g->first; v++) head[v] = 0;
  EACH_STEP(s, g) for (int32_t i = 0; !(s.width && head[s.result]) && i < s.n; i++) crosses[s.args[i]] = head[s.args[i]];
  for (int64_t i = count; i < g->n_outputs; i++) crosses[g->outputs[i]] |= head[g->outputs[i]];
  New p = new_program(g, to);
  int32_t more = 0;
  for (int64_t v = g->first; v < n; v++)
    if (crosses[v]) p.number[v] = (int32_t)n_in + more++, crossing[more] = (int32_t)v;
  crossing[0] = more;
  for (int64_t v = n_in; v < g->first; v++) p.number[v] += more;
  p.known += more;
  EACH_STEP(s, g) if (!(s.width && head[s.result])) keep(&p, &s);
  free(head), free(crosses);
  return finished(g, &p, to);
}

static int64_t (*const PASSES[])(const Given *, int32_t *) = {PASS_LIST};

int64_t pfaffian_pass(int64_t which, const Given *g, int32_t *to) { return PASSES[which](g, to); }

/* Writes the numbers of steps and of values of the Program. */
void pfaffian_count(const Given *g, int64_t *counts) {
  counts[0] = 0, counts[1] = values_of(g);
  EACH_STEP(s, g) counts[0] += s.width >= 0;
}
