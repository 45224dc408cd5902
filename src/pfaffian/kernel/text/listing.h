/* CasADi's instructions -> the words of a Program. CasADi reuses the places of its work vector; in a Program every value has
   its own number. */
typedef struct {
  int64_t n, room;              /* instructions; places of the work vector */
  const int32_t *records;       /* for each instruction its code, and three numbers whose meaning depends on the code */
  const int32_t *meaning;       /* for each code an operation of a Program, or one of the negative numbers below */
  const int32_t *inputs, *outputs; /* where the list of each port begins, then the lists: value, or output index, of entry k */
  const int32_t *constants;     /* the value of each constant instruction, in order */
  const int32_t *calls;         /* for each call in order its callee, the places of its arguments and of its results, or -1 */
} Listing;

enum { UNKNOWN = -1, ALIAS = -2, INPUT = -3, OUTPUT = -4, CONSTANT = -5, CALLED = -6 };

/* Writes the words and the outputs. Returns the number of words, or -1 - i if instruction i is unknown. */
int64_t pfaffian_list(const Given *g, const Listing *l, int32_t *to) {
  int32_t *const work = numbers(l->room, -1), *const begin = to;
  const int32_t *constants = l->constants, *calls = l->calls;
  int32_t known = (int32_t)g->first;
  int64_t i = 0;
  for (const int32_t *r = l->records; i < l->n; i++, r += 4) {
    const int32_t op = l->meaning[r[0]];
    if (op >= 0) {
      *to++ = op;
      for (int k = 0; k < ARITY[op]; k++) *to++ = work[r[2 + k]];
      work[r[1]] = known++;
    } else if (op == INPUT) {
      work[r[1]] = l->inputs[l->inputs[r[2]] + r[3]];
    } else if (op == OUTPUT) {
      g->outputs[l->outputs[l->outputs[r[1]] + r[3]]] = work[r[2]];
    } else if (op == CONSTANT) {
      work[r[1]] = *constants++;
    } else if (op == CALLED) {
      const int32_t callee = *calls++, n = g->sizes[2 * callee], m = g->sizes[2 * callee + 1];
      *to++ = CALL, *to++ = callee, *to++ = 1;
      for (int k = 0; k < n; k++) *to++ = work[*calls++];
      for (int k = 0; k < m; k++, calls++, known++)
        if (*calls >= 0) work[*calls] = known;
    } else if (op == ALIAS) {
      work[r[1]] = work[r[2]];
    } else {
      break;
    }
  }
  free(work);
  return i < l->n ? -1 - i : to - begin;
}
