/* Arrays of the caller: data, and how many doubles lie between two runs and between two elements. Any strides do. */
typedef struct { double *data; int64_t run, element; } Port;

/* Runs of the trial of a new object; its arrays lie one after another, the runs contiguous. */
#define TRIAL_RUNS 8
static inline Port trial_port(double **data, int64_t n) {
  const Port p = {*data, 1, TRIAL_RUNS};
  *data += n * TRIAL_RUNS;
  return p;
}

/* Elements of the runs b ... b + W - 1; past the end of the batch the last run is repeated, never read beyond. */
static inline void read_port(const Port *p, int64_t n, int64_t b, int64_t batch, V *restrict to) {
  const double *d = p->data;
  if (p->run == 1 && b + W <= batch) {
    for (int64_t i = 0; i < n; i++) __builtin_memcpy(to + i, d + b + i * p->element, sizeof(V));
  } else {
    double *lane = (double *)to;
    int64_t offset[W];
    for (int k = 0; k < W; k++) offset[k] = (b + k < batch ? b + k : batch - 1) * p->run;
    for (int64_t i = 0; i < n; i++)
      for (int k = 0; k < W; k++) lane[i * W + k] = d[offset[k] + i * p->element];
  }
}

static inline void write_port(const Port *p, int64_t n, int64_t b, int64_t batch, const V *restrict from) {
  double *d = p->data;
  if (p->run == 1 && b + W <= batch) {
    for (int64_t i = 0; i < n; i++) __builtin_memcpy(d + b + i * p->element, from + i, sizeof(V));
  } else {
    const double *lane = (const double *)from;
    const int count = batch - b < W ? (int)(batch - b) : W;
    for (int64_t i = 0; i < n; i++)
      for (int k = 0; k < count; k++) d[(b + k) * p->run + i * p->element] = lane[i * W + k];
  }
}

/* Same bits whatever another library did to the rounding mode or to denormals. */
#ifdef __SSE2__
#define FP_ENTER const unsigned fp_saved = _mm_getcsr(); _mm_setcsr(0x1f80)
#define FP_LEAVE _mm_setcsr(fp_saved)
#else
#define FP_ENTER
#define FP_LEAVE
#endif
