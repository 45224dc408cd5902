/* The functions of FMI 3.0. */
typedef unsigned Reference;
typedef void LogMessage(void *environment, int status, const char *category, const char *message);

static void say3(void *of, const char *name, int status, const char *category, const char *message) {
  Instance *i = of;
  ((LogMessage *)i->logger)(i->environment, status, category, message);
}

static Instance *created3(const char *name, const char *token, void *environment, LogMessage *log) {
  Instance *i = create(name, token);
  if (!i && log) log(environment, WRONG, "logStatusError", unfit(token) ? unfit(token) : "there is no memory for an instance");
  if (!i) return NULL;
  i->environment = environment, i->logger = (void *)log, i->say = log ? say3 : NULL;
  return i;
}

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT int fmi3SetDebugLogging(Instance *i, _Bool on, size_t n, const char *const *categories) { return GOOD; }

EXPORT Instance *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, _Bool visible,
                                              _Bool logging, void *environment, LogMessage *log) {
  if (MODEL_EXCHANGE) return created3(name, token, environment, log);
  if (log) log(environment, WRONG, "logStatusError", "this is an FMU for co-simulation");
  return NULL;
}
EXPORT Instance *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, _Bool visible,
                                             _Bool logging, _Bool event_mode, _Bool early_return, const Reference *required,
                                             size_t n, void *environment, LogMessage *log, void (*update)(void)) {
  const int fits = !MODEL_EXCHANGE && (event_mode || !CLOCKED);
  if (fits) return created3(name, token, environment, log);
  if (log) log(environment, WRONG, "logStatusError",
               MODEL_EXCHANGE ? "this is an FMU for model exchange" : "the clocks of this FMU need an importer with event mode");
  return NULL;
}
EXPORT Instance *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *resources, _Bool visible,
                                                   _Bool logging, void *environment, LogMessage *log, void (*a)(void),
                                                   void (*b)(void), void (*c)(void)) {
  if (log) log(environment, WRONG, "logStatusError", "this FMU has no scheduled execution");
  return NULL;
}
EXPORT void fmi3FreeInstance(Instance *i) { free(i); }

EXPORT int fmi3EnterInitializationMode(Instance *i, _Bool tolerance_defined, double tolerance, double t, _Bool stop_defined,
                                       double stop) {
  i->now.phase = STARTING, i->now.moved |= t != T_START && TIMED, i->now.t0 = i->now.t = t, i->known = 0;
  return GOOD;
}
EXPORT int fmi3ExitInitializationMode(Instance *i) { return start(i); }
EXPORT int fmi3EnterEventMode(Instance *i) { return GOOD; }
EXPORT int fmi3Terminate(Instance *i) { return i->now.phase = ENDED, GOOD; }
EXPORT int fmi3Reset(Instance *i) { return begin(&i->now), i->known = 0, GOOD; }

EXPORT int fmi3GetFloat64(Instance *i, const Reference *vr, size_t n, double *value, size_t values) {
  return values == n ? get(i, vr, n, value) : refuse(i, "all variables are scalars: give as many values as references");
}
EXPORT int fmi3SetFloat64(Instance *i, const Reference *vr, size_t n, const double *value, size_t values) {
  return values == n ? set(i, vr, n, value) : refuse(i, "all variables are scalars: give as many values as references");
}
#define NONE_OF(name, type)                                                                                              \
  EXPORT int fmi3Get##name(Instance *i, const Reference *vr, size_t n, type *value, size_t values) {                     \
    return n ? refuse(i, "all variables are of the type Float64") : GOOD;                                                \
  }                                                                                                                      \
  EXPORT int fmi3Set##name(Instance *i, const Reference *vr, size_t n, const type *value, size_t values) {               \
    return n ? refuse(i, "all variables are of the type Float64") : GOOD;                                                \
  }
NONE_OF(Float32, float)
NONE_OF(Int8, int8_t)
NONE_OF(UInt8, uint8_t)
NONE_OF(Int16, int16_t)
NONE_OF(UInt16, uint16_t)
NONE_OF(Int32, int32_t)
NONE_OF(UInt32, uint32_t)
NONE_OF(Int64, int64_t)
NONE_OF(UInt64, uint64_t)
NONE_OF(Boolean, _Bool)
typedef const char *Text;
NONE_OF(String, Text)
EXPORT int fmi3GetBinary(Instance *i, const Reference *vr, size_t n, size_t *sizes, const uint8_t **value, size_t values) {
  return n ? refuse(i, "all variables are of the type Float64") : GOOD;
}
EXPORT int fmi3SetBinary(Instance *i, const Reference *vr, size_t n, const size_t *sizes, const uint8_t *const *value,
                         size_t values) {
  return n ? refuse(i, "all variables are of the type Float64") : GOOD;
}
EXPORT int fmi3GetClock(Instance *i, const Reference *vr, size_t n, _Bool *value) { return ticking(i, vr, n, value); }
EXPORT int fmi3SetClock(Instance *i, const Reference *vr, size_t n, const _Bool *value) { return tick(i, vr, n, value); }
EXPORT int fmi3GetNumberOfVariableDependencies(Instance *i, Reference vr, size_t *n) {
  return refuse(i, "dependencies are those of modelDescription.xml");
}
EXPORT int fmi3GetVariableDependencies(Instance *i, Reference vr, size_t *a, Reference *b, size_t *c, int *kinds, size_t n) {
  return refuse(i, "dependencies are those of modelDescription.xml");
}

EXPORT int fmi3GetFMUState(Instance *i, void **state) { return keep(i, &i->now, state); }
EXPORT int fmi3SetFMUState(Instance *i, void *state) { return restore(i, state, sizeof(Machine)); }
EXPORT int fmi3FreeFMUState(Instance *i, void **state) { return release(state); }
EXPORT int fmi3SerializedFMUStateSize(Instance *i, void *state, size_t *size) { return *size = sizeof(Machine), GOOD; }
EXPORT int fmi3SerializeFMUState(Instance *i, void *state, uint8_t *to, size_t size) { return serialise(i, state, to, size); }
EXPORT int fmi3DeserializeFMUState(Instance *i, const uint8_t *from, size_t size, void **state) {
  return deserialise(i, from, size, state);
}

EXPORT int fmi3GetDirectionalDerivative(Instance *i, const Reference *unknowns, size_t nu, const Reference *knowns, size_t nk,
                                        const double *seed, size_t ns, double *value, size_t nv) {
#if MODEL_EXCHANGE
  if (ns == nk && nv == nu) return product(i, unknowns, nu, knowns, nk, seed, value, 1);
#endif
  return refuse(i, "directional derivatives are those of model exchange");
}
EXPORT int fmi3GetAdjointDerivative(Instance *i, const Reference *unknowns, size_t nu, const Reference *knowns, size_t nk,
                                    const double *seed, size_t ns, double *value, size_t nv) {
#if MODEL_EXCHANGE
  if (ns == nu && nv == nk) return product(i, unknowns, nu, knowns, nk, seed, value, 0);
#endif
  return refuse(i, "adjoint derivatives are those of model exchange");
}

EXPORT int fmi3EnterConfigurationMode(Instance *i) { return GOOD; }
EXPORT int fmi3ExitConfigurationMode(Instance *i) { return GOOD; }
EXPORT int fmi3GetIntervalDecimal(Instance *i, const Reference *vr, size_t n, double *interval, int *qualifier) {
  for (size_t k = 0; k < n; k++) qualifier[k] = 1; /* unchanged */
  return clock_times(i, vr, n, PERIOD, interval);
}
EXPORT int fmi3GetShiftDecimal(Instance *i, const Reference *vr, size_t n, double *shift) {
  return clock_times(i, vr, n, PHASE, shift);
}
#define FIXED_CLOCK(name, ...)                                                                                           \
  EXPORT int name(Instance *i, const Reference *vr, size_t n, __VA_ARGS__) {                                             \
    return n ? refuse(i, "clocks have constant intervals, which are decimal numbers") : GOOD;                            \
  }
FIXED_CLOCK(fmi3GetIntervalFraction, uint64_t *a, uint64_t *b, int *c)
FIXED_CLOCK(fmi3GetShiftFraction, uint64_t *a, uint64_t *b)
FIXED_CLOCK(fmi3SetIntervalDecimal, const double *a)
FIXED_CLOCK(fmi3SetIntervalFraction, const uint64_t *a, const uint64_t *b)
FIXED_CLOCK(fmi3SetShiftDecimal, const double *a)
FIXED_CLOCK(fmi3SetShiftFraction, const uint64_t *a, const uint64_t *b)
EXPORT int fmi3EvaluateDiscreteStates(Instance *i) { return GOOD; }
EXPORT int fmi3ActivateModelPartition(Instance *i, Reference vr, double t) {
  return refuse(i, "this FMU has no scheduled execution");
}

EXPORT int fmi3UpdateDiscreteStates(Instance *i, _Bool *again, _Bool *end, _Bool *nominals, _Bool *values, _Bool *timed,
                                    double *next) {
  *again = *end = *nominals = *values = *timed = 0;
  int moved = 0;
#if MODEL_EXCHANGE
  if (happen(i, &moved) != GOOD) return WRONG;
#else
  if (take(i) != GOOD) return WRONG;
#endif
  *values = moved;
  *timed = next_event(&i->now, next);
  return GOOD;
}

EXPORT int fmi3GetNumberOfEventIndicators(Instance *i, size_t *n) { return *n = N_SIDE, GOOD; }
EXPORT int fmi3GetNumberOfContinuousStates(Instance *i, size_t *n) { return *n = N_RATE, GOOD; }
/* Importers look for the functions of both kinds; those of the other kind fail, whatever their arguments. */
#define OTHER_KIND(name) EXPORT int name(Instance *i) { return refuse(i, #name " is not of this kind of FMU"); }
#if MODEL_EXCHANGE
OTHER_KIND(fmi3EnterStepMode)
OTHER_KIND(fmi3GetOutputDerivatives)
OTHER_KIND(fmi3DoStep)
EXPORT int fmi3EnterContinuousTimeMode(Instance *i) { return GOOD; }
EXPORT int fmi3CompletedIntegratorStep(Instance *i, _Bool no_earlier, _Bool *event, _Bool *end) {
  *event = passed(i) || has_drifted(i), *end = 0;
  return GOOD;
}
EXPORT int fmi3SetTime(Instance *i, double t) { return i->now.t = t, i->known = 0, GOOD; }
EXPORT int fmi3SetContinuousStates(Instance *i, const double *x, size_t n) { return set_states(i, x, n); }
EXPORT int fmi3GetContinuousStateDerivatives(Instance *i, double *rate, size_t n) { return rates(i, rate, n); }
EXPORT int fmi3GetEventIndicators(Instance *i, double *side, size_t n) { return sides(i, side, n); }
EXPORT int fmi3GetContinuousStates(Instance *i, double *x, size_t n) { return states(i, x, n); }
EXPORT int fmi3GetNominalsOfContinuousStates(Instance *i, double *nominal, size_t n) { return nominals(nominal, n); }
#else
OTHER_KIND(fmi3EnterContinuousTimeMode)
OTHER_KIND(fmi3CompletedIntegratorStep)
OTHER_KIND(fmi3SetTime)
OTHER_KIND(fmi3SetContinuousStates)
OTHER_KIND(fmi3GetContinuousStateDerivatives)
OTHER_KIND(fmi3GetEventIndicators)
OTHER_KIND(fmi3GetContinuousStates)
OTHER_KIND(fmi3GetNominalsOfContinuousStates)
EXPORT int fmi3EnterStepMode(Instance *i) { return GOOD; }
EXPORT int fmi3GetOutputDerivatives(Instance *i, const Reference *vr, size_t n, const int32_t *orders, double *value, size_t nv) {
  return refuse(i, "derivatives of outputs are not computed");
}
EXPORT int fmi3DoStep(Instance *i, double t, double h, _Bool no_earlier, _Bool *event, _Bool *end, _Bool *early,
                      double *reached) {
  *event = *end = *early = 0;
  return do_step(i, t, h, reached);
}
#endif
