/* One picture of triangles: a depth buffer seen from the eye and one seen from the light, occlusion of the surroundings, and the
   mean of 2 x 2 samples for each pixel. `picture.py` draws the same by NumPy and says what each number means. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RIGHT, UP = 3, BACK = 6, EYE = 9, SCALE = 12, NEAREST, LIGHT_AXES, LIGHT_CENTRE = 23, LIGHT_SCALE = 26, NORMAL,
       HEIGHT = 30, REACH, BIAS, AMBIENT, HEAD, KEY, DARK, OCCLUDED, MARGIN, INK };

typedef struct {
  int32_t width, height, map, n_vertices, n_faces, has_floor;
  const float *vertices;   /* (n_vertices, 3) in the frames of their bodies */
  const int32_t *body;     /* (n_vertices,) */
  const int32_t *faces;    /* (n_faces, 3) */
  const float *colours;    /* (n_faces, 4) */
  const double *poses;     /* (bodies, 12): rotation by rows, position */
  const double *view;
  const uint8_t *behind;   /* (height / 2, width / 2, 3) */
  uint8_t *image;          /* the same size */
  float *work;             /* 4.5 width height + map^2 + 40 numbers, kept from picture to picture of a film */
} Picture;

typedef struct { int left, right, top, bottom; } Rect;
typedef struct { float *depth; int32_t *id; int width, height; } Buffer;

static float least(float a, float b) { return a < b ? a : b; }
static float most(float a, float b) { return a > b ? a : b; }
/* Index of the first sample at or after x, of those from 0 to before `end`. */
static int within(float x, int end) { return (int)least(most(ceilf(x - 0.5f), 0), (float)end); }

typedef float Eight __attribute__((vector_size(32)));
typedef int32_t Mask __attribute__((vector_size(32)));
static const Eight STEPS = {0, 1, 2, 3, 4, 5, 6, 7};

/* Draw a triangle where it is nearer than what is drawn; its number `id` is stored if the buffer has a place for it. */
static inline __attribute__((always_inline)) void scan(const float *points, const int32_t *of, Buffer b, int32_t id, int numbered) {
  const float *p = points + 3 * of[0], *q = points + 3 * of[1], *r = points + 3 * of[2]; /* from above to below */
  const int first = within(least(least(p[1], q[1]), r[1]), b.height), last = within(most(most(p[1], q[1]), r[1]), b.height);
  const int from = within(least(least(p[0], q[0]), r[0]), b.width), to = within(most(most(p[0], q[0]), r[0]), b.width);
  if (first >= last || from >= to) return; /* most triangles of a mesh lie between samples */
  if (q[1] < p[1]) { const float *t = p; p = q, q = t; }
  if (r[1] < p[1]) { const float *t = p; p = r, r = t; }
  if (r[1] < q[1]) { const float *t = q; q = r, r = t; }
  const float x1 = q[0] - p[0], x2 = r[0] - p[0], y1 = q[1] - p[1], y2 = r[1] - p[1], z1 = q[2] - p[2], z2 = r[2] - p[2];
  const float area = x1 * y2 - x2 * y1, over = fabsf(area) > 1e-12f ? 1 / area : 0;
  const float zx = (z1 * y2 - z2 * y1) * over, zy = (x1 * z2 - x2 * z1) * over;
  const float side = x2 / y2, upper = y1 > 0 ? x1 / y1 : 0, lower = r[1] > q[1] ? (r[0] - q[0]) / (r[1] - q[1]) : 0;
  for (int row = first; row < last; row++) {
    const float at = row + 0.5f, fall = at - p[1], a = p[0] + fall * side;
    const float c = at < q[1] ? p[0] + fall * upper : q[0] + (at - q[1]) * lower;
    const float left = most(least(a, c) - 0.5f, 0), right = least(most(a, c) - 0.5f, b.width);
    const int start = (int)left + (left > (int)left);
    float *depth = b.depth + (int64_t)row * b.width + start;
    int32_t *number = b.id + (int64_t)row * b.width + start;
    const float z = p[2] + zx * (start + 0.5f - p[0]) + zy * fall;
    for (int i = start; i < right; i += 8, depth += 8, number += 8) { /* the row of most triangles ends within eight samples */
      const Eight k = STEPS + (float)(i - start), near = z + zx * k, place = k + (float)start;
      Eight drawn;
      memcpy(&drawn, depth, sizeof drawn);
      const Mask closer = (near > drawn) & (place < right);
      drawn = (Eight)((closer & (Mask)near) | (~closer & (Mask)drawn));
      memcpy(depth, &drawn, sizeof drawn);
      if (numbered) {
        Mask old;
        memcpy(&old, number, sizeof old);
        old = (closer & id) | (~closer & old);
        memcpy(number, &old, sizeof old);
      }
    }
  }
}

static void extend(Rect *r, float x, float y) {
  r->left = x < r->left ? (int)x : r->left, r->right = x > r->right ? (int)x : r->right;
  r->top = y < r->top ? (int)y : r->top, r->bottom = y > r->bottom ? (int)y : r->bottom;
}
static void clip(Rect *r, int margin, int width, int height) {
  r->left = r->left < margin ? 0 : (r->left - margin) & ~3, r->top = r->top < margin ? 0 : (r->top - margin) & ~3;
  r->right = r->right + margin + 2 > width ? width : (r->right + margin + 2) & ~1;
  r->bottom = r->bottom + margin + 2 > height ? height : (r->bottom + margin + 2) & ~1;
  if (r->left > r->right) r->left = r->right;
  if (r->top > r->bottom) r->top = r->bottom;
}
static float dot3(const double *a, const float *b) { return (float)(a[0] * b[0] + a[1] * b[1] + a[2] * b[2]); }
static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* Where a ray through a pixel is, seen from the light: l = eye + t (base + column across + row down); the same for the floor.
   lit: the part of the light's depth buffer in which something is drawn. */
typedef struct { float eye[3], base[3], across[3], down[3], scale, bias; Rect lit; } Ray;
static Ray ray_of(const Picture *p, const double *rows, int n, const double *centre) {
  const double *v = p->view;
  Ray r = {.scale = (float)v[LIGHT_SCALE], .bias = (float)v[BIAS]};
  for (int k = 0; k < n; k++) {
    const double *e = rows + 3 * k;
    const double right = dot(e, v + RIGHT), up = dot(e, v + UP), back = dot(e, v + BACK);
    const double gap[3] = {v[EYE] - centre[0], v[EYE + 1] - centre[1], v[EYE + 2] - centre[2]};
    r.eye[k] = (float)dot(e, gap);
    r.base[k] = (float)(-back - right * p->width / 2 / v[SCALE] + up * p->height / 2 / v[SCALE]);
    r.across[k] = (float)(right / v[SCALE]), r.down[k] = (float)(-up / v[SCALE]);
  }
  return r;
}
static float along(const Ray *r, int k, float t, float x, float y) {
  return r->eye[k] + t * (r->base[k] + x * r->across[k] + y * r->down[k]);
}

/* 1 / distance of the floor at the middle of a pixel; not above zero where it is not seen. */
static float floor_at(const Ray *r, const double *v, int c, int row) {
  return (r->base[0] + (2 * c + 1) * r->across[0] + (2 * row + 1) * r->down[0]) / (float)v[HEIGHT];
}

/* Whether the light does not reach the point at distance t on the ray through (x, y). */
static int shaded(const Picture *p, const Ray *r, const float *map, float t, float x, float y) {
  const float u = p->map / 2 + r->scale * along(r, 0, t, x, y), w = p->map / 2 + r->scale * along(r, 1, t, x, y);
  if (!(u >= r->lit.left && w >= r->lit.top && u < r->lit.right && w < r->lit.bottom)) return 0;
  return map[(int64_t)(int)w * p->map + (int)u] > along(r, 2, t, x, y) + r->bias;
}

/* The share of light that the surroundings of a pixel take: how far pairs of opposite neighbours rise above it. */
static float occlusion(const float *near, int width, Rect in, int c, int r, float reach, float scale) {
  static const int way[4][2] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}};
  const float here = near[(int64_t)r * width + c];
  const float pixels = reach * here * scale;
  const int far = pixels < 2 ? 2 : pixels > 24 ? 24 : (int)pixels;
  const float per = 1 / (here * here), foreign = 3 * reach;
  float sum = 0;
  for (int k = 0; k < 4; k++) {
    const int d = k < 2 ? far : (far * 7) / 20 + 1;
    float rise = 0;
    for (int side = -1; side <= 1; side += 2) {
      const int i = c + side * d * way[k][0], j = r + side * d * way[k][1];
      const int inside = i >= in.left && j >= in.top && i < in.right && j < in.bottom;
      const float up = inside ? (near[(int64_t)j * width + i] - here) * per : INFINITY;
      rise += up > foreign ? -foreign : up < -reach ? -reach : up > reach ? reach : up; /* one in front takes no light */
    }
    sum += rise > 0 ? rise / (2 * reach) : 0;
  }
  return sum / 4;
}

/* Occlusion by blocks of 2 x 2 pixels: what each block keeps of its brightness, and whether it or one beside it loses any. */
typedef struct { float *open; uint8_t *busy; int width, height; } Blocks;

static void find_busy(Blocks b) {
  for (int j = 0; j < b.height; j++)
    for (int i = 0; i < b.width; i++) {
      int busy = 0;
      for (int n = j > 0 ? j - 1 : 0; n <= j + 1 && n < b.height; n++)
        for (int m = i > 0 ? i - 1 : 0; m <= i + 1 && m < b.width; m++) busy |= b.open[(int64_t)n * b.width + m] != 1;
      b.busy[(int64_t)j * b.width + i] = (uint8_t)busy;
    }
}

/* What a pixel keeps: the mean over its block and those beside it, as far as they show something at the distance of the pixel. */
static float smoothed(Blocks b, const float *near, int width, Rect in, int c, int r, float reach) {
  const int column = (c - in.left) / 2, row = (r - in.top) / 2;
  if (!b.busy[(int64_t)row * b.width + column]) return 1;
  const float here = near[(int64_t)r * width + c], far = reach * here * here;
  float sum = 0, weight = 0;
  for (int j = row > 0 ? row - 1 : 0; j <= row + 1 && j < b.height; j++)
    for (int i = column > 0 ? column - 1 : 0; i <= column + 1 && i < b.width; i++) {
      const float there = near[(int64_t)(in.top + 2 * j) * width + in.left + 2 * i];
      const float w = there > 0 && fabsf(there - here) <= far ? (float)((1 + (i == column)) * (1 + (j == row))) : 0;
      sum += w * b.open[(int64_t)j * b.width + i], weight += w;
    }
  return weight > 0 ? sum / weight : 1;
}

/* How much an edge passes through a sample, from 0 to 1: along rows and columns 1 / distance is straight on a plane. */
static float edge(const float *depth, int width, int height, int c, int r, float scale) {
  const float *const d = depth + (int64_t)r * width + c;
  const float across = fabsf(d[c > 0 ? -1 : 0] + d[c < width - 1 ? 1 : 0] - 2 * d[0]);
  const float down = fabsf(d[r > 0 ? -width : 0] + d[r < height - 1 ? width : 0] - 2 * d[0]);
  return least(most(2 * most(across, down) * scale / d[0] - 1, 0), 1);
}

enum { UNKNOWN = -1 };

/* The light on a face without the one that casts shadows, and that one's; lit: points in the light's depth buffer. */
static void lighten(const Picture *p, const Ray *r, const float *lit, int f, float *shade) {
  const double *v = p->view;
  const float *const l[3] = {lit + 3 * p->faces[3 * f], lit + 3 * p->faces[3 * f + 1], lit + 3 * p->faces[3 * f + 2]};
  const float s = (float)v[LIGHT_SCALE]; /* samples there for a length of 1 */
  float e[2][3], from[3];
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < 2; i++) e[i][k] = (k < 2 ? 1 : s) * (l[i + 1][k] - l[0][k]);
    from[k] = r->eye[k] - (k < 2 ? (l[0][k] - p->map / 2) / s : l[0][k]);
  }
  const float n[3] = {e[0][1] * e[1][2] - e[0][2] * e[1][1], e[0][2] * e[1][0] - e[0][0] * e[1][2],
                      e[0][0] * e[1][1] - e[0][1] * e[1][0]};
  const float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) + 1e-30f;
  const float far = sqrtf(from[0] * from[0] + from[1] * from[1] + from[2] * from[2]) + 1e-30f;
  const float facing = (n[0] * from[0] + n[1] * from[1] + n[2] * from[2]) / (length * far), sign = facing < 0 ? -1 : 1;
  shade[0] = (float)(v[AMBIENT] + v[HEAD] * sign * facing);
  shade[1] = (float)v[KEY] * most(sign * n[2] / length, 0);
}

int pfaffian_picture(const Picture *p) {
  const double *v = p->view;
  const int width = p->width, height = p->height, w1 = width / 2, size = p->map;
  const int64_t pixels = (int64_t)width * height;
  float *seen = malloc(sizeof(float) * 3 * p->n_vertices + 4), *lit = malloc(sizeof(float) * 3 * p->n_vertices + 4);
  float *shade = malloc(sizeof(float) * 2 * p->n_faces + 4);
  float *depth = p->work, *map = depth + pixels + 8, *near = map + (int64_t)size * size + 8, *dim = near + pixels / 4;
  int32_t *id = (int32_t *)(dim + pixels / 4);
  const Buffer over = {(float *)(id + pixels + 8), id + 2 * (pixels + 8), width, height};
  int32_t *clear = malloc(sizeof(int32_t) * p->n_faces + 4);
  const Buffer eye = {depth, id, width, height}, light = {map, 0, size, size};
  Rect solid = {width, 0, height, 0}, all;
  const int floor = p->has_floor;
  int n_clear = 0, failed = !(seen && lit && shade && clear);
  if (failed) goto end;
  memcpy(p->image, p->behind, (size_t)3 * w1 * (height / 2));
  Ray to_light = ray_of(p, v + LIGHT_AXES, 3, v + LIGHT_CENTRE);
  const double zero[3] = {v[EYE], v[EYE + 1], v[EYE + 2]};
  const Ray to_floor = ray_of(p, v + NORMAL, 1, zero);
  all = solid;
  to_light.lit = (Rect){size, 0, size, 0};
  for (int i = 0; i < p->n_vertices; i++) {
    const double *X = p->poses + 12 * p->body[i];
    const float *x = p->vertices + 3 * i;
    float world[3];
    for (int k = 0; k < 3; k++) world[k] = dot3(X + 3 * k, x) + (float)(X[9 + k] - v[EYE + k]);
    float *s = seen + 3 * i, *l = lit + 3 * i;
    const float away = -dot3(v + BACK, world);
    s[2] = away > v[NEAREST] ? 1 / away : -1;
    s[0] = width / 2 + (float)v[SCALE] * dot3(v + RIGHT, world) * s[2], s[1] = height / 2 - (float)v[SCALE] * dot3(v + UP, world) * s[2];
    for (int k = 0; k < 3; k++) l[k] = dot3(v + LIGHT_AXES + 3 * k, world) + to_light.eye[k];
    if (s[2] > 0) extend(&solid, s[0], s[1]);
    if (floor) { /* the shadow of the point on the floor */
      const double *L = v + LIGHT_AXES + 6;
      const double fall = (dot3(v + NORMAL, world) - v[HEIGHT]) / dot(v + NORMAL, L);
      const float to[3] = {world[0] - (float)(fall * L[0]), world[1] - (float)(fall * L[1]), world[2] - (float)(fall * L[2])};
      const float far = -dot3(v + BACK, to);
      if (far > v[NEAREST]) extend(&all, width / 2 + (float)v[SCALE] * dot3(v + RIGHT, to) / far, height / 2 - (float)v[SCALE] * dot3(v + UP, to) / far);
    }
    l[0] = size / 2 + (float)v[LIGHT_SCALE] * l[0], l[1] = size / 2 + (float)v[LIGHT_SCALE] * l[1];
    extend(&to_light.lit, l[0], l[1]);
  }
  clip(&to_light.lit, 2, size, size);
  for (int row = to_light.lit.top; row < to_light.lit.bottom; row++)
    for (int i = to_light.lit.left; i < to_light.lit.right; i++) map[(int64_t)row * size + i] = -INFINITY;
  if (all.left > solid.left) all.left = solid.left;
  if (all.right < solid.right) all.right = solid.right;
  if (all.top > solid.top) all.top = solid.top;
  if (all.bottom < solid.bottom) all.bottom = solid.bottom;
  Rect wide = solid; /* where neighbours of the solids are: elsewhere nothing takes light from the floor */
  clip(&solid, 2, width, height), clip(&wide, 2 * (int)v[MARGIN] + 2, width, height);
  clip(&all, 2 * (int)v[MARGIN] + 8, width, height);
  for (int row = solid.top; row < solid.bottom; row++)
    memset(id + (int64_t)row * width + solid.left, -1, sizeof(int32_t) * (solid.right - solid.left));
  for (int row = all.top; row < all.bottom; row++)
    memset(depth + (int64_t)row * width + all.left, 0, sizeof(float) * (all.right - all.left));
  for (int f = 0; f < p->n_faces; f++) {
    const int32_t *k = p->faces + 3 * f;
    const int opaque = p->colours[4 * f + 3] > 0.99f;
    shade[2 * f] = UNKNOWN;
    if (opaque) scan(lit, k, light, 0, 0);
    if (seen[3 * k[0] + 2] < 0 || seen[3 * k[1] + 2] < 0 || seen[3 * k[2] + 2] < 0) continue;
    if (opaque) scan(seen, k, eye, f, 1);
    else clear[n_clear++] = f;
  }
  if (n_clear) { /* of the transparent triangles the nearest one is blended over each sample */
    for (int row = solid.top; row < solid.bottom; row++) {
      const int64_t i = (int64_t)row * width + solid.left, n = sizeof(float) * (solid.right - solid.left);
      memcpy(over.depth + i, depth + i, n), memset(over.id + i, -1, n);
    }
    for (int i = 0; i < n_clear; i++) scan(seen, p->faces + 3 * clear[i], over, clear[i], 1);
  }
  const Rect part = {all.left / 2, all.right / 2, all.top / 2, all.bottom / 2};
  for (int r = part.top; r < part.bottom; r++)
    for (int c = part.left; c < part.right; c++) {
      const float *d = depth + (int64_t)2 * r * width + 2 * c;
      const float z = most(most(d[0], d[1]), most(d[width], d[width + 1]));
      near[(int64_t)r * w1 + c] = z > 0 || !floor ? z : most(floor_at(&to_floor, v, c, r), 0);
    }
  Blocks blocks = {.open = dim, .width = (part.right - part.left + 1) / 2, .height = (part.bottom - part.top + 1) / 2};
  blocks.busy = (uint8_t *)(dim + (int64_t)blocks.width * blocks.height);
  for (int j = 0; j < blocks.height; j++)
    for (int i = 0; i < blocks.width; i++) {
      const int c = part.left + 2 * i, r = part.top + 2 * j;
      const int beside = 2 * c >= wide.left && 2 * c < wide.right && 2 * r >= wide.top && 2 * r < wide.bottom;
      const int taken = beside && near[(int64_t)r * w1 + c] > 0;
      const float lost = taken ? occlusion(near, w1, part, c, r, (float)v[REACH], (float)v[SCALE] / 2) : 0;
      blocks.open[(int64_t)j * blocks.width + i] = 1 - (float)v[OCCLUDED] * lost;
    }
  find_busy(blocks);
  for (int r = part.top; r < part.bottom; r++)
    for (int c = part.left; c < part.right; c++) {
      const int64_t i = (int64_t)r * w1 + c, first = (int64_t)2 * r * width + 2 * c;
      const float keeps = smoothed(blocks, near, w1, part, c, r, (float)v[REACH]);
      uint8_t *const to = p->image + 3 * i;
      const float *const d = depth + first;
      if (!(d[0] > 0 && d[1] > 0 && d[width] > 0 && d[width + 1] > 0)) { /* what is behind is seen */
        float keep = keeps;
        const float z = floor ? floor_at(&to_floor, v, c, r) : 0;
        if (z > 0) {
          int dark = 0;
          for (int k = 0; k < 2; k++) dark += shaded(p, &to_light, map, 1 / z, 2 * c + k + 0.5f, 2 * r + k + 0.5f);
          keep *= 1 - (float)v[DARK] * dark / 2;
        }
        if (keep != 1)
          for (int k = 0; k < 3; k++) to[k] = (uint8_t)(to[k] * keep);
      }
      if (2 * c < solid.left || 2 * c >= solid.right || 2 * r < solid.top || 2 * r >= solid.bottom) continue;
      if (!n_clear && d[0] <= 0 && d[1] <= 0 && d[width] <= 0 && d[width + 1] <= 0) continue;
      const int hidden = shaded(p, &to_light, map, 1 / near[i], 2 * c + 1, 2 * r + 1);
      int sum[3] = {2, 2, 2}, bare = 1;
      for (int k = 0; k < 4; k++) {
        const int64_t at = first + (k >> 1) * width + (k & 1);
        const int f = id[at], g = n_clear ? over.id[at] : -1;
        uint8_t sample[3] = {to[0], to[1], to[2]};
        if (f >= 0) {
          if (shade[2 * f] == UNKNOWN) lighten(p, &to_light, lit, f, shade + 2 * f);
          const float ink = (float)v[INK] * edge(depth, width, height, 2 * c + (k & 1), 2 * r + (k >> 1), (float)v[SCALE]);
          const float bright = 255 * least(shade[2 * f] + (hidden ? 0 : shade[2 * f + 1]), 1) * keeps * (1 - ink);
          for (int j = 0; j < 3; j++) sample[j] = (uint8_t)(bright * p->colours[4 * f + j]);
        }
        if (g >= 0) {
          if (shade[2 * g] == UNKNOWN) lighten(p, &to_light, lit, g, shade + 2 * g);
          const float *colour = p->colours + 4 * g, light = 255 * least(shade[2 * g] + shade[2 * g + 1], 1);
          for (int j = 0; j < 3; j++) sample[j] = (uint8_t)(colour[3] * light * colour[j] + (1 - colour[3]) * sample[j]);
        }
        bare &= f < 0 && g < 0;
        for (int j = 0; j < 3; j++) sum[j] += sample[j];
      }
      for (int j = 0; j < 3 && !bare; j++) to[j] = (uint8_t)(sum[j] / 4);
    }
end:
  free(seen), free(lit), free(shade), free(clear);
  return failed;
}

/* A picture as video: the plane of brightness, then those of blue and red, one number for 2 x 2 pixels. ITU-R BT.601, from 16.
   before: the picture that the planes show, of which only what differs is computed anew; null: none. */
void pfaffian_video(int width, int height, const uint8_t *image, const uint8_t *before, uint8_t *planes) {
  enum { PIECE = 32 }; /* pixels that are compared at once */
  const int64_t pixels = (int64_t)width * height;
  for (int row = 0; row < height; row += 2)
    for (int first = 0; first < width; first += PIECE) {
      const int end = first + PIECE < width ? first + PIECE : width;
      const int64_t start = 3 * ((int64_t)row * width + first), below = start + 3 * width, n = 3 * (end - first);
      if (before && !memcmp(image + start, before + start, n) && !memcmp(image + below, before + below, n)) continue;
      for (int column = first; column < end; column += 2) {
        int sum[3] = {0, 0, 0};
        for (int k = 0; k < 4; k++) {
          const int64_t at = (int64_t)(row + (k >> 1)) * width + column + (k & 1);
          const uint8_t *c = image + 3 * at;
          planes[at] = (uint8_t)((16829 * c[0] + 33039 * c[1] + 6416 * c[2] + (16 << 16) + (1 << 15)) >> 16);
          for (int j = 0; j < 3; j++) sum[j] += c[j];
        }
        uint8_t *blue = planes + pixels + (int64_t)row / 2 * (width / 2) + column / 2, *red = blue + pixels / 4;
        *blue = (uint8_t)((28784 * sum[2] - 9714 * sum[0] - 19070 * sum[1] + (128 << 18) + (1 << 17)) >> 18);
        *red = (uint8_t)((28784 * sum[0] - 24103 * sum[1] - 4681 * sum[2] + (128 << 18) + (1 << 17)) >> 18);
      }
    }
}
