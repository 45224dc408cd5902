/* The interpreter of encoded Programs; encode.py describes the words. The loops of compiled kernels (ports.h, rollout.h) run
   them one block at a time. Sizes that are constants in the text of a compiled kernel are read from the Code here. */
typedef struct {
  const int32_t *words, *table, *tops;  /* table: see Encoded in encode.py */
  const double *constants;
  const int32_t *inputs[2], *outputs[2]; /* lengths of the ports of the first two Programs called from outside */
  const int32_t *faults;                /* number of faults of each sampler */
  int64_t n_constants, n_inputs, n_outputs, samplers, sampled, kept, frame, registers; /* registers come last in a frame */
} Code;

/* A log of decisions: either the outcomes of all decisions, a bit for each lane of the block, or the operands of `count`
   chosen decisions. */
typedef struct {
  uint8_t *sides;                       /* (decisions, blocks) outcomes; 0: operands only */
  const int64_t *which;
  int64_t count, blocks, block;
  double *operands;                     /* (count, blocks, 2, W) */
} Log;

static _Thread_local const Code *code;
static _Thread_local V *home;         /* the registers that contain the constants */
static _Thread_local int sampler;     /* the top that sampler_program runs */
static _Thread_local Log *book;       /* 0: decisions are not noted */
static _Thread_local int64_t decision, chosen; /* index of the next decision, and of the next chosen one in the log */

#define ROW(top) (code->table + 6 * code->tops[top])
#define FRAME (code->frame)
#define TILE 1
#define PROGRAM first_program
#define PROGRAM_IN (code->inputs[0])
#define PROGRAM_N_IN (code->n_inputs)
#define PROGRAM_OUT (code->outputs[0])
#define PROGRAM_N_OUT (code->n_outputs)
#define STEP first_program
#define STEP_IN (code->inputs[0])
#define STEP_N_IN 6
#define STEP_OUT (code->outputs[0])
#define STEP_N_OUT (code->n_outputs)
#define STEP_OUT_TOTAL (ROW(0)[4])
#define STEP_IN_TOTAL (ROW(0)[2])
#define OBSERVE second_program
#define OBSERVE_IN (code->inputs[1])
#define OBSERVE_N_IN 4
#define OBSERVE_OUT (code->outputs[1])
#define OBSERVE_N_OUT 1
#define OBSERVE_OUT_TOTAL (ROW(1)[4])
#define N_SAMPLERS (code->samplers)
#define SAMPLER_NF (code->faults)
#define SAMPLER_OUT (code->sampled)
#define KEPT (code->kept)
#define SAMPLER(j) (sampler = 2 + (j), sampler_program)

static void run_words(const int32_t *restrict at, V *restrict r);

/* Notes a decision: its outcome, or its operands if it is chosen. */
static NOINLINE void note(I side, V a, V b) {
  const int64_t d = decision++;
  if (book->sides) {
    int64_t x[W];
    __builtin_memcpy(x, &side, sizeof x);
    int bits = 0;
    for (int i = 0; i < W; i++) bits |= (x[i] & 1) << i;
    book->sides[d * book->blocks + book->block] = (uint8_t)bits;
  } else if (chosen < book->count && d == book->which[chosen]) {
    double *const to = book->operands + 2 * W * (chosen++ * book->blocks + book->block);
    __builtin_memcpy(to, &a, sizeof a);
    __builtin_memcpy(to + W, &b, sizeof b);
  }
}

/* Notes the decisions of the iterations that a repeated call skips because its results no longer change: those of its last
   iteration. */
static NOINLINE void note_rest(const int32_t *row, int64_t turns, V *r) {
  const int64_t n = row[5], end = decision + turns * n;
  if (book->sides)
    for (; decision < end; decision++)
      book->sides[decision * book->blocks + book->block] = book->sides[(decision - n) * book->blocks + book->block];
  while (chosen < book->count && book->which[chosen] < end) {
    decision += (book->which[chosen] - decision) / n * n;
    run_words(code->words + row[0], r);
  }
  decision = end;
}

/* Executes a call: copies the arguments to the callee's inputs, runs it, and copies the results. A repeated call continues
   with its own results until they stop changing; one that is guarded is left out where its first argument is zero. Returns the next word. */
static NOINLINE const int32_t *run_call(const int32_t *restrict at, V *restrict r) {
  const int32_t *const row = code->table + 6 * at[0], *const outs = code->words + row[3];
  const int32_t guarded = at[1] < 0, times = guarded ? 1 : at[1], n = row[2], m = row[4];
  at += 2;
  if (guarded && !book && !ANY(NE(r[at[0]], K(0.0)))) return at + n + m;
  V *const in = r + row[1];
  Log *const noted = book;
  for (int i = 0; i < n; i++) in[i] = r[at[i]];
  for (int32_t k = 1;; k++) {
    run_words(code->words + row[0], r);
    if (k == times) break;
    if (k == TURNS) book = 0;
    int same = 1;
    for (int i = 0; i < m && same; i++) same = !ANY(NE(BITS(in[i]), BITS(r[outs[i]])));
    if (same) {
      if (book && row[5]) note_rest(row, (times < TURNS ? times : TURNS) - k, r);
      break;
    }
    V next[m];
    for (int i = 0; i < m; i++) next[i] = r[outs[i]];
    for (int i = 0; i < m; i++) in[i] = next[i];
  }
  book = noted;
  at += n;
  for (int i = 0; i < m; i++) r[at[i]] = r[outs[i]];
  return at + m;
}

/* Evaluates one of the Programs that are called from outside. top: its index among them. */
static NOINLINE void interpret(int top, const V *in, V *out, V *w) {
  const int32_t *const row = ROW(top), *const outs = code->words + row[3];
  decision = chosen = 0;
  if (w != home) {
    for (int64_t i = 0; i < code->n_constants; i++) w[i] = K(code->constants[i]);
    home = w;
  }
  for (int i = 0; i < row[2]; i++) w[row[1] + i] = in[i];
  run_words(code->words + row[0], w);
  for (int i = 0; i < row[4]; i++) out[i] = w[outs[i]];
  if (book) book->block++;
}

static void first_program(const V *in, V *out, V *w, const double *c, int64_t n) { (void)c, (void)n, interpret(0, in, out, w); }
static void second_program(const V *in, V *out, V *w, const double *c, int64_t n) { (void)c, (void)n, interpret(1, in, out, w); }
static void sampler_program(const V *in, V *out, V *w, const double *c, int64_t n) { (void)c, (void)n, interpret(sampler, in, out, w); }

static void begin(const Code *given, Log *log) { code = given, book = log, home = 0; }

#define pfaffian_trial try_loops /* renames the trial of rollout.h */
