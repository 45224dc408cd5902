/* The loop over the runs [begin, end) of a batch, a tile of blocks at a time; begin is a multiple of W.
   w: TILE frames of inputs, outputs, slots. */
void pfaffian_evaluate(const Port *in, const Port *out, int64_t batch, int64_t begin, int64_t end, V *w) {
  V *const results = w + PROGRAM_IN_TOTAL, *const slots = results + PROGRAM_OUT_TOTAL;
  const int64_t blocks = (end - begin + W - 1) / W, tile = tile_size(blocks);
  FP_ENTER;
  for (int64_t done = 0; done < blocks; done += tile) {
    const int64_t b = begin + done * W, n = blocks - done < tile ? blocks - done : tile;
    V *to = w;
    for (int i = 0; i < PROGRAM_N_IN; to += PROGRAM_IN[i++])
      if (done == 0 || in[i].run != 0) read_port(in + i, PROGRAM_IN[i], b, n, batch, to);
    PROGRAM(w, results, slots, n * FRAME);
    const V *from = results;
    for (int i = 0; i < PROGRAM_N_OUT; from += PROGRAM_OUT[i++]) write_port(out + i, PROGRAM_OUT[i], b, n, batch, from);
  }
  FP_LEAVE;
}

void pfaffian_trial(double *in, double *out, V *w) {
  Port from[PROGRAM_N_IN + 1], to[PROGRAM_N_OUT + 1];
  for (int i = 0; i < PROGRAM_N_IN; i++) from[i] = trial_port(&in, PROGRAM_IN[i]);
  for (int i = 0; i < PROGRAM_N_OUT; i++) to[i] = trial_port(&out, PROGRAM_OUT[i]);
  pfaffian_evaluate(from, to, TRIAL_RUNS, 0, TRIAL_RUNS, w);
}
