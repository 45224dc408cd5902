/* A run is a thread. Its frame is memory of its own, which the device lays out so that neighbours read neighbours. */
KERNEL void pfaffian_device_rollout(const Rollout *r) {
  const int64_t run = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (run >= r->batch) return;
  V w[FRAME];
  run_tile(0, r, run, 1, w);
}
