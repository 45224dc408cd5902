/* An array of the caller: its data, and the strides between two runs and between two elements, in doubles. */
typedef struct { double *data; int64_t run, element; } Port;

/* Number of runs in the trial of a new object. The arrays of a trial lie one after another, with the runs contiguous. */
#define TRIAL_RUNS 32
static inline Port trial_port(double **data, int64_t n) {
  const Port p = {*data, 1, TRIAL_RUNS};
  *data += n * TRIAL_RUNS;
  return p;
}

/* Number of blocks of a tile, at most TILE, such that the tiles are as equal as possible. */
static inline int64_t tile_size(int64_t blocks) {
  const int64_t tiles = (blocks + TILE - 1) / TILE;
  return tiles ? (blocks + tiles - 1) / tiles : 0;
}

/* Number of blocks from run b on that are full and contiguous in memory, like vectors. */
static inline int64_t whole(const Port *p, int64_t b, int64_t blocks, int64_t batch) {
  const int64_t full = (batch - b) / W;
  return p->run != 1 ? 0 : full < blocks ? full : blocks;
}

/* Reads the elements of one block. Lanes past the end of the batch repeat its last run; nothing is read beyond it. */
static inline void read_block(const Port *p, int64_t n, int64_t b, int64_t batch, V *restrict to) {
  const double *const d = p->data;
  double *const lane = (double *)to;
  int64_t i = 0, offset[W];
#ifdef SQUARE
  if (p->element == 1 && b + W <= batch && n >= SQUARE)
    for (; i < n; i += SQUARE) {
      if (i > n - SQUARE) i = n - SQUARE; /* the last square overlaps the one before */
      read_square(d + b * p->run + i, p->run, to + i);
    }
#endif
  for (int j = 0; j < W; j++) offset[j] = (b + j < batch ? b + j : batch - 1) * p->run;
  for (; i < n; i++)
    for (int j = 0; j < W; j++) lane[i * W + j] = d[offset[j] + i * p->element];
}

static inline void write_block(const Port *p, int64_t n, int64_t b, int64_t batch, const V *restrict from) {
  double *const d = p->data + b * p->run;
  const double *const lane = (const double *)from;
  const int64_t count = batch - b < W ? batch - b : W;
  int64_t i = 0;
#ifdef SQUARE
  if (p->element == 1 && count == W && n >= SQUARE)
    for (; i < n; i += SQUARE) {
      if (i > n - SQUARE) i = n - SQUARE;
      write_square(d + i, p->run, from + i);
    }
#endif
  for (; i < n; i++)
    for (int64_t j = 0; j < count; j++) d[j * p->run + i * p->element] = lane[i * W + j];
}

/* Reads n elements of `blocks` blocks of runs, from run b on, into their frames. An element is read for all blocks before the
   next one, because the next may be a page away. */
static inline void read_port(const Port *p, int64_t n, int64_t b, int64_t blocks, int64_t batch, V *restrict to) {
  const int64_t full = whole(p, b, blocks, batch);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < full; k++)
      __builtin_memcpy(to + k * FRAME + i, p->data + b + k * W + i * p->element, sizeof(V));
  for (int64_t k = full; k < blocks; k++) read_block(p, n, b + k * W, batch, to + k * FRAME);
}

static inline void write_port(const Port *p, int64_t n, int64_t b, int64_t blocks, int64_t batch, const V *restrict from) {
  const int64_t full = whole(p, b, blocks, batch);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < full; k++)
      __builtin_memcpy(p->data + b + k * W + i * p->element, from + k * FRAME + i, sizeof(V));
  for (int64_t k = full; k < blocks; k++) write_block(p, n, b + k * W, batch, from + k * FRAME);
}

/* Evaluates a Program for the runs [begin, end) of a batch, a tile of blocks at a time; begin is a multiple of W. There is a
   port for each input and output, with these sizes. w: TILE frames of inputs, outputs and slots. c: the table of constants. */
typedef void Program(const V *in, V *out, V *w, const double *c, int64_t n);
static INLINE void evaluate(Program *program, const double *c, const int *in_sizes, int n_in, const int *out_sizes, int n_out,
                            const Port *in, const Port *out, int64_t batch, int64_t begin, int64_t end, V *w) {
  V *results = w;
  for (int i = 0; i < n_in; i++) results += in_sizes[i];
  V *slots = results;
  for (int i = 0; i < n_out; i++) slots += out_sizes[i];
  const int64_t blocks = (end - begin + W - 1) / W, tile = tile_size(blocks);
  for (int64_t done = 0; done < blocks; done += tile) {
    const int64_t b = begin + done * W, n = blocks - done < tile ? blocks - done : tile;
    V *to = w;
    for (int i = 0; i < n_in; to += in_sizes[i++])
      if (done == 0 || in[i].run != 0) read_port(in + i, in_sizes[i], b, n, batch, to);
    program(w, results, slots, c, n * FRAME);
    const V *from = results;
    for (int i = 0; i < n_out; from += out_sizes[i++]) write_port(out + i, out_sizes[i], b, n, batch, from);
  }
}

#ifndef __CUDACC__
/* Evaluates a Program for a trial; its arrays lie one after another. */
static void try_program(Program *program, const double *c, const int *in_sizes, int n_in, const int *out_sizes, int n_out,
                        double **in, double **out, V *w) {
  Port from[n_in + 1], to[n_out + 1];
  for (int i = 0; i < n_in; i++) from[i] = trial_port(in, in_sizes[i]);
  for (int i = 0; i < n_out; i++) to[i] = trial_port(out, out_sizes[i]);
  evaluate(program, c, in_sizes, n_in, out_sizes, n_out, from, to, TRIAL_RUNS, 0, TRIAL_RUNS, w);
}
#define TRY(name, c, in, out, w) try_program(name, c, name##_IN, name##_N_IN, name##_OUT, name##_N_OUT, in, out, w)
#endif

/* Set the default rounding mode and denormals, so that the bits are the same whatever modes another library has set. */
#if defined(__SSE2__) && !defined(__CUDACC__)
#define FP_ENTER const unsigned fp_saved = __builtin_ia32_stmxcsr(); __builtin_ia32_ldmxcsr(0x1f80)
#define FP_LEAVE __builtin_ia32_ldmxcsr(fp_saved)
#else
#define FP_ENTER
#define FP_LEAVE
#endif
