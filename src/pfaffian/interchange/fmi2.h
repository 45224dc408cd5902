/* The functions of FMI 2.0. */
typedef unsigned Reference;
typedef struct {
  void (*logger)(void *environment, const char *name, int status, const char *category, const char *message, ...);
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*finished)(void *, int);
  void *environment;
} Callbacks;
typedef struct { int again, end, nominals, values, timed; double next; } EventInfo;

static void say2(void *of, const char *name, int status, const char *category, const char *message) {
  Instance *i = of;
  const Callbacks *to = i->logger;
  to->logger(to->environment, i->name, status, category, "%s", message);
}

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT int fmi2SetDebugLogging(Instance *i, int on, size_t n, const char *const *categories) { return GOOD; }
EXPORT Instance *fmi2Instantiate(const char *name, int kind, const char *token, const char *resources, const Callbacks *callbacks,
                                 int visible, int logging) {
  Instance *i = kind == !MODEL_EXCHANGE ? create(name, token) : NULL;
  if (i) i->logger = (void *)callbacks, i->say = callbacks && callbacks->logger ? say2 : NULL;
  else if (callbacks && callbacks->logger)
    callbacks->logger(callbacks->environment, name, WRONG, "logStatusError", "%s",
                      unfit(token) ? unfit(token) : "this is an FMU of the other kind");
  return i;
}
EXPORT void fmi2FreeInstance(Instance *i) { free(i); }
EXPORT int fmi2SetupExperiment(Instance *i, int tolerance_defined, double tolerance, double t, int stop_defined, double stop) {
  i->now.moved |= t != T_START && TIMED, i->now.t0 = i->now.t = t, i->known = 0;
  return GOOD;
}
EXPORT int fmi2EnterInitializationMode(Instance *i) { return i->now.phase = STARTING, GOOD; }
EXPORT int fmi2ExitInitializationMode(Instance *i) { return start(i); }
EXPORT int fmi2Terminate(Instance *i) { return i->now.phase = ENDED, GOOD; }
EXPORT int fmi2Reset(Instance *i) { return begin(&i->now), i->known = 0, GOOD; }
EXPORT int fmi2GetReal(Instance *i, const Reference *vr, size_t n, double *value) { return get(i, vr, n, value); }
EXPORT int fmi2SetReal(Instance *i, const Reference *vr, size_t n, const double *value) { return set(i, vr, n, value); }
#define NONE_OF(name, type)                                                                                              \
  EXPORT int fmi2Get##name(Instance *i, const Reference *vr, size_t n, type *value) {                                    \
    return n ? refuse(i, "all variables are of the type Real") : GOOD;                                                   \
  }                                                                                                                      \
  EXPORT int fmi2Set##name(Instance *i, const Reference *vr, size_t n, const type *value) {                              \
    return n ? refuse(i, "all variables are of the type Real") : GOOD;                                                   \
  }
NONE_OF(Integer, int)
NONE_OF(Boolean, int)
typedef const char *Text;
NONE_OF(String, Text)

EXPORT int fmi2GetFMUstate(Instance *i, void **state) { return keep(i, &i->now, state); }
EXPORT int fmi2SetFMUstate(Instance *i, void *state) { return restore(i, state, sizeof(Machine)); }
EXPORT int fmi2FreeFMUstate(Instance *i, void **state) { return release(state); }
EXPORT int fmi2SerializedFMUstateSize(Instance *i, void *state, size_t *size) { return *size = sizeof(Machine), GOOD; }
EXPORT int fmi2SerializeFMUstate(Instance *i, void *state, char *to, size_t size) { return serialise(i, state, to, size); }
EXPORT int fmi2DeSerializeFMUstate(Instance *i, const char *from, size_t size, void **state) {
  return deserialise(i, from, size, state);
}
EXPORT int fmi2GetDirectionalDerivative(Instance *i, const Reference *unknowns, size_t nu, const Reference *knowns, size_t nk,
                                        const double *seed, double *value) {
#if MODEL_EXCHANGE
  return product(i, unknowns, nu, knowns, nk, seed, value, 1);
#else
  return refuse(i, "directional derivatives are those of model exchange");
#endif
}

/* Importers look for the functions of both kinds; those of the other kind fail, whatever their arguments. */
#define OTHER_KIND(name) EXPORT int name(Instance *i) { return refuse(i, #name " is not of this kind of FMU"); }
#if MODEL_EXCHANGE
OTHER_KIND(fmi2SetRealInputDerivatives)
OTHER_KIND(fmi2GetRealOutputDerivatives)
OTHER_KIND(fmi2DoStep)
OTHER_KIND(fmi2CancelStep)
OTHER_KIND(fmi2GetStatus)
OTHER_KIND(fmi2GetRealStatus)
OTHER_KIND(fmi2GetIntegerStatus)
OTHER_KIND(fmi2GetBooleanStatus)
OTHER_KIND(fmi2GetStringStatus)
EXPORT int fmi2EnterEventMode(Instance *i) { return GOOD; }
EXPORT int fmi2NewDiscreteStates(Instance *i, EventInfo *info) {
  memset(info, 0, sizeof *info);
  if (happen(i, &info->values) != GOOD) return WRONG;
  info->timed = next_event(&i->now, &info->next);
  return GOOD;
}
EXPORT int fmi2EnterContinuousTimeMode(Instance *i) { return GOOD; }
EXPORT int fmi2CompletedIntegratorStep(Instance *i, int no_earlier, int *event, int *end) {
  *event = passed(i) || has_drifted(i), *end = 0;
  return GOOD;
}
EXPORT int fmi2SetTime(Instance *i, double t) { return i->now.t = t, i->known = 0, GOOD; }
EXPORT int fmi2SetContinuousStates(Instance *i, const double *x, size_t n) { return set_states(i, x, n); }
EXPORT int fmi2GetDerivatives(Instance *i, double *rate, size_t n) { return rates(i, rate, n); }
EXPORT int fmi2GetEventIndicators(Instance *i, double *side, size_t n) { return sides(i, side, n); }
EXPORT int fmi2GetContinuousStates(Instance *i, double *x, size_t n) { return states(i, x, n); }
EXPORT int fmi2GetNominalsOfContinuousStates(Instance *i, double *nominal, size_t n) { return nominals(nominal, n); }
#else
OTHER_KIND(fmi2EnterEventMode)
OTHER_KIND(fmi2NewDiscreteStates)
OTHER_KIND(fmi2EnterContinuousTimeMode)
OTHER_KIND(fmi2CompletedIntegratorStep)
OTHER_KIND(fmi2SetTime)
OTHER_KIND(fmi2SetContinuousStates)
OTHER_KIND(fmi2GetDerivatives)
OTHER_KIND(fmi2GetEventIndicators)
OTHER_KIND(fmi2GetContinuousStates)
OTHER_KIND(fmi2GetNominalsOfContinuousStates)
EXPORT int fmi2SetRealInputDerivatives(Instance *i, const Reference *vr, size_t n, const int *orders, const double *value) {
  return refuse(i, "inputs are held during a step");
}
EXPORT int fmi2GetRealOutputDerivatives(Instance *i, const Reference *vr, size_t n, const int *orders, double *value) {
  return refuse(i, "derivatives of outputs are not computed");
}
EXPORT int fmi2DoStep(Instance *i, double t, double h, int no_earlier) {
  double reached;
  return do_step(i, t, h, &reached);
}
EXPORT int fmi2CancelStep(Instance *i) { return refuse(i, "steps are not computed in the background"); }
EXPORT int fmi2GetStatus(Instance *i, int kind, int *value) { return DISCARD; }
EXPORT int fmi2GetRealStatus(Instance *i, int kind, double *value) {
  if (kind != 2) return DISCARD;
  return *value = i->now.t, GOOD;
}
EXPORT int fmi2GetIntegerStatus(Instance *i, int kind, int *value) { return DISCARD; }
EXPORT int fmi2GetBooleanStatus(Instance *i, int kind, int *value) {
  if (kind != 3) return DISCARD;
  return *value = i->now.status != 0, GOOD;
}
EXPORT int fmi2GetStringStatus(Instance *i, int kind, const char **value) { return DISCARD; }
#endif
