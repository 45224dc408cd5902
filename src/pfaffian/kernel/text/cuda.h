/* The text of one lane uses these names of C, which CUDA spells differently. A run is a thread. Functions without a qualifier
   are for the device (-default-device). Contractions are off (-fmad=false), and division and square roots are rounded
   correctly, so the bits are those of every other processor. */
#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define UINT64_C(c) c##ULL
#define INT64_MAX 0x7fffffffffffffffLL
#define INT64_MIN (-INT64_MAX - 1)
#define UINT32_MAX 0xffffffffU
#endif
#define restrict __restrict__
#define NOINLINE __noinline__
#define INLINE __forceinline__
#define STAGE static NOINLINE
#define KERNEL extern "C" __global__
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000LL)
#define __builtin_sqrt sqrt
#define __builtin_floor floor
#define __builtin_ceil ceil
#define __builtin_fmod fmod
#define __builtin_fabs fabs
#define __builtin_memcpy memcpy
static inline void __builtin_memmove(double *to, const double *from, size_t bytes) { /* moves to lower addresses only */
  for (size_t i = 0; i < bytes / sizeof *to; i++) to[i] = from[i];
}
