/* One instance of the machine in an importer, and its variables by value reference: 0 is the time; then, one after another, the
   inputs, the parameters, the states, their rates, the outputs, the event indicators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { GOOD = 0, DISCARD = 2, WRONG = 3 };                 /* status of a call, in FMI 2.0 and 3.0 */
enum { CREATED, STARTING, READY, ENDED };
enum { FIRST_U = 1, FIRST_P = FIRST_U + N_U, FIRST_X = FIRST_P + N_P, FIRST_RATE = FIRST_X + N_X,
       FIRST_Y = FIRST_RATE + N_RATE, FIRST_SIDE = FIRST_Y + N_Y, N_VARIABLES = FIRST_SIDE + N_SIDE };

/* All that a saved state contains. k counts the steps since t0; lane: numbers of the error control, if any; moved: whether the
   importer chose another start; taken: number of the next instant of each group of parts of the law; ticks: whether its clock
   ticks; jumped: when each parameter jumped last. */
typedef struct {
  char token[sizeof TOKEN];
  double t0, t, u[N_U + 1], p[N_P + 1], x[N_X + 1], lane[LANE + 1];
  int64_t k, stopped;
  int64_t taken[N_PARTS + 1];
  double jumped[N_SWITCHED + 1];
  int32_t status, phase, moved, ticks[N_PARTS + 1];
} Machine;

typedef void Say(void *environment, const char *name, int status, const char *category, const char *message);

typedef struct {
  Machine now;
  int known;                                               /* which part of `found` belongs to the present time, state and inputs */
  double found[N_RATE + N_Y + N_SIDE + 1];
  Say *say;
  void *environment, *logger;
  char name[256];
  V work[FRAME * TILE];
} Instance;

static int refuse(Instance *i, const char *message) {
  if (i->say) i->say(i, i->name, WRONG, "logStatusError", message);
  return WRONG;
}

static void begin(Machine *now) {
  memset(now, 0, sizeof *now);
  memcpy(now->token, TOKEN, sizeof TOKEN);
  memcpy(now->u, U_START, N_U * sizeof(double));
  memcpy(now->p, P_START, N_P * sizeof(double));
  memcpy(now->x, X_START, N_X * sizeof(double));
  now->t0 = now->t = T_START, now->stopped = -1;
  for (int j = 0; j < N_SWITCHED; j++) now->jumped[j] = -INFINITE;
}

/* Why there is no instance for this token on this processor; NULL if there is one. */
static const char *unfit(const char *token) {
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("fma"))
    return "this FMU was compiled for processors of the level x86-64-v3, and this is an older one";
#endif
  return token && !strcmp(token, TOKEN) ? NULL : "the GUID or instantiation token is not that of this machine";
}

static Instance *create(const char *name, const char *token) {
  if (unfit(token)) return NULL;
  Instance *i = calloc(1, sizeof *i);
  if (!i) return NULL;
  snprintf(i->name, sizeof i->name, "%s", name ? name : "");
  begin(&i->now);
  return i;
}

static int failed(Instance *i) {
  char text[1024];
  snprintf(text, sizeof text, "%s (at t = %.6g s)", CAUSES[i->now.status], i->now.t);
  return refuse(i, text);
}

/* In co-simulation: whether a communication step may begin at t, which is the time that was reached to within `close`. */
static int may_step(Instance *i, double t, double close) {
  if (i->now.phase != READY) return refuse(i, "a step needs a machine that has been initialised");
  if (i->now.status) return failed(i);
  return FABS(t - i->now.t) <= close ? GOOD : refuse(i, "the communication point is not the time that was reached");
}

enum { RATES = 1, OUTPUTS = 2 };                           /* rates and event indicators; outputs */
static int find(Instance *i, int part);                    /* fills a part of `found`, or all of it */

static int get(Instance *i, const unsigned *vr, size_t n, double *value) {
  for (size_t j = 0; j < n; j++) {
    const unsigned r = vr[j];
    if (r >= N_VARIABLES) return refuse(i, "there is no number of this value reference");
    if (r == 0) value[j] = i->now.t;
    else if (r < FIRST_P) value[j] = i->now.u[r - FIRST_U];
    else if (r < FIRST_X) value[j] = i->now.p[r - FIRST_P];
    else if (r < FIRST_RATE) value[j] = i->now.x[r - FIRST_X];
    else {
      const int part = r >= FIRST_Y && r < FIRST_SIDE ? OUTPUTS : RATES;
      if (!(i->known & part) && find(i, part) != GOOD) return WRONG;
      value[j] = i->found[r - FIRST_RATE];
    }
  }
  return GOOD;
}

static int set(Instance *i, const unsigned *vr, size_t n, const double *value) {
  for (size_t j = 0; j < n; j++) {
    const unsigned r = vr[j];
    const int early = i->now.phase < READY;
    if (value[j] - value[j] != 0.0) return refuse(i, "a variable was set to a value that is not finite");
    if (r >= FIRST_U && r < FIRST_P) i->now.u[r - FIRST_U] = value[j];
    else if (r >= FIRST_P && r < FIRST_X && P_FREE[r - FIRST_P]) {
      i->now.moved |= early && i->now.p[r - FIRST_P] != value[j];
      i->now.p[r - FIRST_P] = value[j];
    } else if (r >= FIRST_X && r < FIRST_RATE && (early || MODEL_EXCHANGE)) {
      i->now.moved |= early && i->now.x[r - FIRST_X] != value[j];
      i->now.x[r - FIRST_X] = value[j];
    } else return refuse(i, "this variable cannot be set now");
  }
  i->known = 0;
  return GOOD;
}

/* Puts the state onto the constraints; returns the largest change, relative to 1 plus the value. */
static double onto_constraints(Instance *i, double *violation) {
  double in[PROJECT_IN_TOTAL + 1], out[PROJECT_OUT_TOTAL + 1], most = 0.0;
  memcpy(in, i->now.x, PROJECT_IN[0] * sizeof(double));
  memcpy(in + PROJECT_IN[0], i->now.p, N_P * sizeof(double));
  in[PROJECT_IN[0] + N_P] = i->now.t;
  FP_ENTER;
  PROJECT(in, out, i->work, NULL, FRAME);
  FP_LEAVE;
  for (int j = 0; j < PROJECT_OUT[0]; j++) {
    const double change = FABS(out[j] - in[j]) / (1.0 + FABS(in[j]));
    if (!(change <= most)) most = change;
  }
  *violation = out[PROJECT_OUT[0]];
  memcpy(i->now.x, out, PROJECT_OUT[0] * sizeof(double));
  i->known = 0;
  return most;
}

/* Puts the state onto the constraints until it changes no more; returns the violation that remains. */
static double settled(Instance *i) {
  double violation = 0.0;
  for (int j = 0; j < 30; j++)
    if (onto_constraints(i, &violation) < 1e-14) break;
  return violation;
}

/* Puts a start that the importer chose onto the constraints. */
static int start(Instance *i) {
  const double violation = i->now.moved ? settled(i) : 0.0;
  if (!(violation <= MOST_VIOLATION))
    return refuse(i, "the start values cannot be put onto the constraints: choose values nearer to a possible configuration");
  i->now.phase = READY, i->known = 0;
  return GOOD;
}

static int restore(Instance *i, const void *saved, size_t size) {
  if (!saved || size != sizeof(Machine) || memcmp(saved, TOKEN, sizeof TOKEN))
    return refuse(i, "the saved state is not of this machine");
  memcpy(&i->now, saved, sizeof(Machine));
  i->known = 0;
  return GOOD;
}

/* A copy of a saved machine in *state, for which it has room or gets some. */
static int keep(Instance *i, const void *from, void **state) {
  if (!*state) *state = malloc(sizeof(Machine));
  if (!*state) return refuse(i, "there is no memory for a saved state");
  memcpy(*state, from, sizeof(Machine));
  return GOOD;
}

static int release(void **state) {
  if (state) free(*state), *state = NULL;
  return GOOD;
}

static int serialise(Instance *i, const void *state, void *to, size_t size) {
  if (!state || size < sizeof(Machine)) return refuse(i, "a serialised state needs more bytes");
  memcpy(to, state, sizeof(Machine));
  return GOOD;
}

static int deserialise(Instance *i, const void *from, size_t size, void **state) {
  if (!from || size != sizeof(Machine) || memcmp(from, TOKEN, sizeof TOKEN))
    return refuse(i, "the serialised state is not of this machine");
  return keep(i, from, state);
}
