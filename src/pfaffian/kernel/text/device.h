/* The time loop on a device. A run is a thread. Its frame is local memory, which the device interleaves so that neighbouring
   threads read neighbouring addresses. */
KERNEL void pfaffian_device_rollout(const Rollout *r) {
  const int64_t run = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (run >= r->batch) return;
  V w[FRAME];
  run_tile(0, r, run, 1, w);
}
