/* Programs as data: `encode` says what the words mean. The same loops as those of compiled kernels (ports.h, rollout.h) run
   them, one block at a time; what is a constant of the text there is read from the Code here. */
typedef struct {
  const int32_t *words, *table, *tops;  /* of each Program: first word, first input, inputs, list of outputs, outputs */
  const double *constants;
  const int32_t *inputs[2], *outputs[2]; /* their sizes, of the first two Programs that the loops call */
  const int32_t *faults;                /* of each sampler */
  int64_t n_constants, n_inputs, n_outputs, samplers, sampled, kept, frame, registers; /* these are the last of a frame */
} Code;

static _Thread_local const Code *code;
static _Thread_local V *home; /* where the constants are */

#define ROW(top) (code->table + 5 * code->tops[top])
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
#define STEP_N_OUT 2
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
#define SAMPLER ((Program *const[]){third_program}) /* of the trial */
#define SAMPLE(j, in, out, w, n) interpret(2 + (j), in, out, w)

static void run_words(const int32_t *restrict at, V *restrict r);

/* A call: the arguments go to the callee's inputs; a repeated one goes on with its own results until they stop changing. */
static NOINLINE const int32_t *run_call(const int32_t *restrict at, V *restrict r) {
  const int32_t *const row = code->table + 5 * at[0], *const outs = code->words + row[3];
  const int32_t times = at[1], n = row[2], m = row[4];
  at += 2;
  V *const in = r + row[1];
  for (int i = 0; i < n; i++) in[i] = r[at[i]];
  for (int32_t k = 1;; k++) {
    run_words(code->words + row[0], r);
    if (k == times) break;
    int same = 1;
    for (int i = 0; i < m && same; i++) same = !ANY(NE(BITS(in[i]), BITS(r[outs[i]])));
    if (same) break;
    V next[m];
    for (int i = 0; i < m; i++) next[i] = r[outs[i]];
    for (int i = 0; i < m; i++) in[i] = next[i];
  }
  at += n;
  for (int i = 0; i < m; i++) r[at[i]] = r[outs[i]];
  return at + m;
}

static NOINLINE void interpret(int top, const V *in, V *out, V *w) {
  const int32_t *const row = ROW(top), *const outs = code->words + row[3];
  if (w != home) {
    for (int64_t i = 0; i < code->n_constants; i++) w[i] = K(code->constants[i]);
    home = w;
  }
  for (int i = 0; i < row[2]; i++) w[row[1] + i] = in[i];
  run_words(code->words + row[0], w);
  for (int i = 0; i < row[4]; i++) out[i] = w[outs[i]];
}

static void first_program(const V *in, V *out, V *w, int64_t n) { (void)n, interpret(0, in, out, w); }
static void second_program(const V *in, V *out, V *w, int64_t n) { (void)n, interpret(1, in, out, w); }
static void third_program(const V *in, V *out, V *w, int64_t n) { (void)n, interpret(2, in, out, w); }

static void begin(const Code *given) { code = given, home = 0; }

#define pfaffian_trial try_loops
