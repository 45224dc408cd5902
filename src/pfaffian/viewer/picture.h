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

typedef struct { int left, right, top, bottom; } Rect; /* from left to before right, from top to before bottom */
typedef struct { int left, right; } Span;
typedef struct { float *depth; int32_t *id; int width, height; } Buffer;

static int lower(int a, int b) { return a < b ? a : b; }
static int higher(int a, int b) { return a > b ? a : b; }
static float least(float a, float b) { return a < b ? a : b; }
static float most(float a, float b) { return a > b ? a : b; }
/* Index of the first sample at or after x, of those from 0 to before `end`. */
static int within(float x, int end) { return (int)least(most(ceilf(x - 0.5f), 0), (float)end); }

typedef float Eight __attribute__((vector_size(32)));
typedef int32_t Mask __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourMask __attribute__((vector_size(16)));
static const Eight STEPS = {0, 1, 2, 3, 4, 5, 6, 7};

/* Draw eight samples in a row where they are within a triangle and nearer than what is drawn; numbered: store its number, too. */
static inline __attribute__((always_inline)) void put(Buffer b, int64_t at, Eight near, Mask inside, int32_t id, int numbered) {
  Eight drawn;
  Mask number;
  memcpy(&drawn, b.depth + at, sizeof drawn);
  inside &= near > drawn;
  drawn = (Eight)((inside & (Mask)near) | (~inside & (Mask)drawn));
  memcpy(b.depth + at, &drawn, sizeof drawn);
  if (!numbered) return;
  memcpy(&number, b.id + at, sizeof number);
  number = (inside & id) | (~inside & number);
  memcpy(b.id + at, &number, sizeof number);
}

/* Draw a triangle where it is nearer than what is drawn; its number `id` is stored if the buffer has a place for it. */
static inline __attribute__((always_inline)) void scan(const float *points, const int32_t *of, Buffer b, int32_t id, int numbered) {
  const float *p = points + 3 * of[0], *q = points + 3 * of[1], *r = points + 3 * of[2]; /* from above to below */
  const int first = within(least(least(p[1], q[1]), r[1]), b.height), last = within(most(most(p[1], q[1]), r[1]), b.height);
  const int from = within(least(least(p[0], q[0]), r[0]), b.width), to = within(most(most(p[0], q[0]), r[0]), b.width);
  if (first >= last || from >= to) return; /* many triangles of a mesh lie between samples */
  if (q[1] < p[1]) { const float *t = p; p = q, q = t; }
  if (r[1] < p[1]) { const float *t = p; p = r, r = t; }
  if (r[1] < q[1]) { const float *t = q; q = r, r = t; }
  const float x1 = q[0] - p[0], x2 = r[0] - p[0], y1 = q[1] - p[1], y2 = r[1] - p[1], z1 = q[2] - p[2], z2 = r[2] - p[2];
  const float area = x1 * y2 - x2 * y1, over = fabsf(area) > 1e-12f ? 1 / area : 0;
  const float zx = (z1 * y2 - z2 * y1) * over, zy = (x1 * z2 - x2 * z1) * over;
  const float side = x2 / y2, upper = y1 > 0 ? x1 / y1 : 0, lower = r[1] > q[1] ? (r[0] - q[0]) / (r[1] - q[1]) : 0;
  const int narrow = to - from <= 8; /* as most triangles of a mesh are: one step a row, always at the same place */
  for (int row = first; row < last; row++) {
    const float at = row + 0.5f, fall = at - p[1], a = p[0] + fall * side;
    const float c = at < q[1] ? p[0] + fall * upper : q[0] + (at - q[1]) * lower;
    const float left = most(least(a, c) - 0.5f, 0), right = least(most(a, c) - 0.5f, b.width);
    const int start = narrow ? from : (int)left, end = narrow ? from + 1 : (int)ceilf(right);
    for (int i = start; i < end; i += 8) {
      const Eight place = STEPS + (float)i, near = zx * (place + (0.5f - p[0])) + (p[2] + zy * fall);
      put(b, (int64_t)row * b.width + i, near, (place >= left) & (place < right), id, numbered);
    }
  }
}

static void extend(Rect *r, float x, float y) {
  r->left = x < r->left ? (int)x : r->left, r->right = x > r->right ? (int)x : r->right;
  r->top = y < r->top ? (int)y : r->top, r->bottom = y > r->bottom ? (int)y : r->bottom;
}
/* Widen a part of a picture by a margin, and to whole blocks of four by four samples, as far as the picture goes. */
static void clip(Rect *r, int margin, int width, int height) {
  r->left = r->left < margin ? 0 : (r->left - margin) & ~3, r->top = r->top < margin ? 0 : (r->top - margin) & ~3;
  r->right = r->right + margin + 4 > width ? width : (r->right + margin + 4) & ~3;
  r->bottom = r->bottom + margin + 4 > height ? height : (r->bottom + margin + 4) & ~3;
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

/* Count, for pixels of row r, the points that the light does not reach: at distance t on the rays through (2 c + x, 2 r + x). */
static void find_shadows(
    const Picture *p, const Ray *r, const float *map, const float *t, int row, Span at, float x, uint8_t *restrict dark) {
  const float middle = p->map / 2, low[2] = {r->lit.left, r->lit.top}, high[2] = {r->lit.right - 1, r->lit.bottom - 1};
  for (int c = at.left; c < at.right; c++) {
    const float u = middle + r->scale * along(r, 0, t[c], 2 * c + x, 2 * row + x);
    const float w = middle + r->scale * along(r, 1, t[c], 2 * c + x, 2 * row + x);
    const int i = (int)most(least(u, high[0]), low[0]), j = (int)most(least(w, high[1]), low[1]);
    const int lit = (u >= low[0]) & (w >= low[1]) & (u < high[0] + 1) & (w < high[1] + 1);
    dark[c] += lit & (map[j * p->map + i] > along(r, 2, t[c], 2 * c + x, 2 * row + x) + r->bias);
  }
}

/* The share of light that the surroundings of a pixel take: how far pairs of opposite neighbours rise above it. */
static float occlusion(const float *near, int width, Rect in, int c, int r, float reach, float scale) {
  static const int way[4][2] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}};
  const float here = near[(int64_t)r * width + c];
  const float pixels = reach * here * scale;
  const int far = pixels < 2 ? 2 : pixels > 24 ? 24 : (int)pixels;
  const int amid = c - far >= in.left && c + far < in.right && r - far >= in.top && r + far < in.bottom;
  const float per = 1 / (here * here), foreign = 3 * reach;
  float sum = 0;
  for (int k = 0; k < 4; k++) {
    const int d = k < 2 ? far : (far * 7) / 20 + 1;
    float rise = 0;
    for (int side = -1; side <= 1; side += 2) {
      const int i = c + side * d * way[k][0], j = r + side * d * way[k][1];
      const int inside = amid || (i >= in.left && j >= in.top && i < in.right && j < in.bottom);
      const float up = inside ? (near[(int64_t)j * width + i] - here) * per : INFINITY;
      rise += up > foreign ? -foreign : most(least(up, reach), -reach); /* one in front takes no light */
    }
    sum += most(rise, 0);
  }
  return sum / (8 * reach);
}

/* Occlusion by blocks of 2 x 2 pixels: what each block keeps of its brightness, and whether it or one beside it loses any. */
typedef struct { float *open; uint8_t *busy; int width, height; } Blocks;

static void lose(Blocks b, int i, int j, float part) {
  if (!(part > 0)) return;
  b.open[(int64_t)j * b.width + i] = 1 - part;
  for (int n = j > 0 ? j - 1 : 0; n <= j + 1 && n < b.height; n++)
    for (int m = i > 0 ? i - 1 : 0; m <= i + 1 && m < b.width; m++) b.busy[(int64_t)n * b.width + m] = 1;
}

/* What the four pixels of a block keep: means over it and the blocks beside it, as far as they show something at the distance of
   the pixel.   near: at the pixels of the blocks. */
static Four smoothed(Blocks b, const float *near, int width, int i, int j, float reach) {
  const float *const first = near + (int64_t)2 * j * width + 2 * i;
  const Four here = {first[0], first[1], first[width], first[width + 1]}, far = reach * here * here;
  Four sum = {0, 0, 0, 0}, weight = sum;
  for (int n = j > 0 ? j - 1 : 0; n <= j + 1 && n < b.height; n++)
    for (int m = i > 0 ? i - 1 : 0; m <= i + 1 && m < b.width; m++) {
      const float there = near[(int64_t)2 * n * width + 2 * m], w = (1 + (m == i)) * (1 + (n == j)) * (there > 0);
      const Four gap = there - here;
      const Four counts = (Four)((FourMask)(w + 0 * gap) & (gap <= far) & (gap >= -far));
      sum += counts * b.open[(int64_t)n * b.width + m], weight += counts;
    }
  for (int k = 0; k < 4; k++) sum[k] = weight[k] > 0 ? sum[k] / weight[k] : 1;
  return sum;
}

/* How much an edge passes through samples of a row, from 0 to 1: along rows and columns 1 / distance is straight on a plane.
   up, down: how far the samples above and below are. */
static void find_edges(const float *d, int64_t up, int64_t down, int width, Span at, float scale, float *restrict ink) {
  const int first = at.left > 0 ? at.left : 1, end = at.right < width ? at.right : width - 1;
  for (int i = first; i < end; i++) {
    const float across = fabsf(d[i - 1] + d[i + 1] - 2 * d[i]), beneath = fabsf(d[i + up] + d[i + down] - 2 * d[i]);
    ink[i] = least(most(2 * most(across, beneath) * scale / d[i] - 1, 0), 1);
  }
  ink[0] = ink[1], ink[width - 1] = ink[width - 2]; /* at the sides of the picture */
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

/* What the passes over one picture share. solid, cast: samples that may show solids and their shadows on the floor; all: both,
   and what is occluded beside them. */
typedef struct {
  const Picture *p;
  Buffer eye, light, over;
  Ray to_light, to_floor;
  Rect solid, cast, all;
  Blocks blocks;
  Span *spans;             /* (height / 2,) the pixels of each row that show solids */
  float *seen, *lit;       /* (n_vertices, 3) the points, seen from the eye and from the light */
  float *shade;            /* (n_faces, 2) the light on each, by `lighten` */
  float *near;             /* (height / 2, width / 2): 1 / distance of the nearest sample of each pixel */
  float *ink;              /* (2, width): how much of an edge passes through the samples of a row of pixels */
  float *keep, *t;         /* by pixels of a row: the part of its brightness that each keeps, and the distance of what it shows */
  uint8_t *dark;           /* how many of its points the light does not reach */
  int32_t *clear, n_clear; /* the transparent triangles */
} Frame;

/* The points of the solids as the eye and the light see them, and what their shadows on the floor cover. */
static void place_points(Frame *f) {
  const Picture *p = f->p;
  const double *v = p->view, *L = v + LIGHT_AXES + 6;
  const float scale = (float)v[SCALE];
  for (int i = 0; i < p->n_vertices; i++) {
    const double *X = p->poses + 12 * p->body[i];
    const float *x = p->vertices + 3 * i;
    float world[3], *s = f->seen + 3 * i, *l = f->lit + 3 * i;
    for (int k = 0; k < 3; k++) world[k] = dot3(X + 3 * k, x) + (float)(X[9 + k] - v[EYE + k]);
    const float away = -dot3(v + BACK, world);
    s[2] = away > v[NEAREST] ? 1 / away : -1;
    s[0] = p->width / 2 + scale * dot3(v + RIGHT, world) * s[2], s[1] = p->height / 2 - scale * dot3(v + UP, world) * s[2];
    if (s[2] > 0) extend(&f->solid, s[0], s[1]);
    for (int k = 0; k < 3; k++) l[k] = dot3(v + LIGHT_AXES + 3 * k, world) + f->to_light.eye[k];
    l[0] = p->map / 2 + (float)v[LIGHT_SCALE] * l[0], l[1] = p->map / 2 + (float)v[LIGHT_SCALE] * l[1];
    extend(&f->to_light.lit, l[0], l[1]);
    if (!p->has_floor) continue;
    const double fall = (dot3(v + NORMAL, world) - v[HEIGHT]) / dot(v + NORMAL, L);
    const float to[3] = {world[0] - (float)(fall * L[0]), world[1] - (float)(fall * L[1]), world[2] - (float)(fall * L[2])};
    const float far = -dot3(v + BACK, to);
    if (far > v[NEAREST])
      extend(&f->cast, p->width / 2 + scale * dot3(v + RIGHT, to) / far, p->height / 2 - scale * dot3(v + UP, to) / far);
  }
}

/* Empty the parts of the depth buffers that are drawn into or read. */
static void clear_buffers(Frame *f) {
  const Rect lit = f->to_light.lit, solid = f->solid, all = f->all;
  for (int row = lit.top; row < lit.bottom; row++)
    for (int i = lit.left; i < lit.right; i++) f->light.depth[(int64_t)row * f->light.width + i] = -INFINITY;
  for (int row = solid.top; row < solid.bottom; row++)
    memset(f->eye.id + (int64_t)row * f->eye.width + solid.left, -1, sizeof(int32_t) * (solid.right - solid.left));
  for (int row = all.top; row < all.bottom; row++)
    memset(f->eye.depth + (int64_t)row * f->eye.width + all.left, 0, sizeof(float) * (all.right - all.left));
}

/* Draw the triangles into the depth buffers; of the transparent ones the nearest to each sample is blended over it later. */
static void scan_triangles(Frame *f) {
  const Picture *p = f->p;
  const float *seen = f->seen;
  for (int i = 0; i < p->n_faces; i++) {
    const int32_t *k = p->faces + 3 * i;
    const int opaque = p->colours[4 * i + 3] > 0.99f;
    f->shade[2 * i] = UNKNOWN;
    if (opaque) scan(f->lit, k, f->light, 0, 0);
    if (seen[3 * k[0] + 2] < 0 || seen[3 * k[1] + 2] < 0 || seen[3 * k[2] + 2] < 0) continue;
    if (opaque) scan(seen, k, f->eye, i, 1);
    else f->clear[f->n_clear++] = i;
  }
  if (!f->n_clear) return;
  for (int row = f->solid.top; row < f->solid.bottom; row++) {
    const int64_t i = (int64_t)row * f->eye.width + f->solid.left, n = sizeof(float) * (f->solid.right - f->solid.left);
    memcpy(f->over.depth + i, f->eye.depth + i, n), memset(f->over.id + i, -1, n);
  }
  for (int i = 0; i < f->n_clear; i++) scan(seen, p->faces + 3 * f->clear[i], f->over, f->clear[i], 1);
}

/* Which pixels of each row show solids, and how near. */
static void find_near(Frame *f) {
  const int width = f->p->width;
  for (int r = f->all.top / 2; r < f->all.bottom / 2; r++) {
    const float *d = f->eye.depth + (int64_t)2 * r * width, *e = d + width;
    float *near = f->near + (int64_t)r * (width / 2);
    Span s = {f->solid.left / 2, f->solid.right / 2};
    if (2 * r < f->solid.top || 2 * r >= f->solid.bottom) s.right = s.left;
    memset(near + f->all.left / 2, 0, sizeof(float) * (f->all.right - f->all.left) / 2);
    for (int c = s.left; c < s.right; c++) near[c] = most(most(d[2 * c], d[2 * c + 1]), most(e[2 * c], e[2 * c + 1]));
    if (!f->n_clear) {
      while (s.left < s.right && near[s.left] <= 0) s.left++;
      while (s.left < s.right && near[s.right - 1] <= 0) s.right--;
    }
    f->spans[r] = s;
  }
}

/* The pixels of row r and of those up to `margin` above and below it that show solids, and as many beside them. */
static Span around(const Frame *f, int r, int margin) {
  const int top = higher(r - margin, f->all.top / 2), bottom = lower(r + margin + 1, f->all.bottom / 2);
  Span s = {f->all.right / 2, f->all.left / 2};
  for (int i = top; i < bottom; i++)
    if (f->spans[i].left < f->spans[i].right)
      s = (Span){lower(s.left, f->spans[i].left), higher(s.right, f->spans[i].right)};
  if (s.left >= s.right) return (Span){s.right, s.right};
  return (Span){higher(s.left - margin, f->all.left / 2), lower(s.right + margin, f->all.right / 2)};
}

/* How near the floor is, where solids are so near that it may lose light to them or they to it. */
static void add_floor(Frame *f) {
  for (int r = f->all.top / 2; r < f->all.bottom / 2; r++) {
    const Span beside = around(f, r, 2 * (int)f->p->view[MARGIN] + 2);
    float *near = f->near + (int64_t)r * (f->p->width / 2);
    for (int c = beside.left; c < beside.right; c++)
      near[c] = near[c] > 0 ? near[c] : most(floor_at(&f->to_floor, f->p->view, c, r), 0);
  }
}

/* What each block of pixels loses to its surroundings: far from solids, where there is only floor, nothing. */
static void occlude(Frame *f) {
  const double *v = f->p->view;
  const Rect part = {f->all.left / 2, f->all.right / 2, f->all.top / 2, f->all.bottom / 2};
  const Blocks b = f->blocks;
  const int width = f->p->width / 2;
  const float reach = (float)v[REACH], scale = (float)v[SCALE] / 2;
  memset(b.busy, 0, (size_t)b.width * b.height);
  for (int k = 0; k < b.width * b.height; k++) b.open[k] = 1;
  for (int j = 0; j < b.height; j++) {
    const int r = part.top + 2 * j;
    const Span beside = around(f, r, (int)v[MARGIN] + 1);
    for (int c = beside.left + (beside.left & 1); c < beside.right; c += 2)
      if (f->near[(int64_t)r * width + c] > 0)
        lose(b, (c - part.left) / 2, j, (float)v[OCCLUDED] * occlusion(f->near, width, part, c, r, reach, scale));
  }
}

/* The light on a face, from everywhere and where it is not hidden from the one that casts shadows. */
static float light_on(const Frame *f, int face, int hidden) {
  float *shade = f->shade + 2 * face;
  if (shade[0] == UNKNOWN) lighten(f->p, &f->to_light, f->lit, face, shade);
  return 255 * least(shade[0] + (hidden ? 0 : shade[1]), 1);
}

/* Colour the samples of a pixel that shows solids, and mix them.   to: what is behind. */
static void colour(const Frame *f, uint8_t *to, float keeps, int hidden, int c, int r) {
  const Picture *p = f->p;
  const int width = p->width;
  const int64_t first = (int64_t)2 * r * width + 2 * c;
  const int32_t *id = f->eye.id + first;
  const float *ink = f->ink + 2 * c;
  const int one = id[0] == id[1] && id[0] == id[width] && id[0] == id[width + 1];
  if (!f->n_clear && one && ink[0] + ink[1] + ink[width] + ink[width + 1] == 0) { /* four equal samples */
    const float bright = light_on(f, id[0], hidden) * keeps;
    for (int j = 0; j < 3; j++) to[j] = (uint8_t)(bright * p->colours[4 * id[0] + j]);
    return;
  }
  int sum[3] = {2, 2, 2}, bare = 1;
  for (int k = 0; k < 4; k++) {
    const int64_t at = (k >> 1) * width + (k & 1);
    const int face = id[at], over = f->n_clear ? f->over.id[first + at] : -1;
    uint8_t sample[3] = {to[0], to[1], to[2]};
    if (face >= 0) {
      const float bright = light_on(f, face, hidden) * keeps * (1 - (float)p->view[INK] * ink[at]);
      for (int j = 0; j < 3; j++) sample[j] = (uint8_t)(bright * p->colours[4 * face + j]);
    }
    if (over >= 0) {
      const float *paint = p->colours + 4 * over, bright = light_on(f, over, 0);
      for (int j = 0; j < 3; j++) sample[j] = (uint8_t)(paint[3] * bright * paint[j] + (1 - paint[3]) * sample[j]);
    }
    bare &= face < 0 && over < 0;
    for (int j = 0; j < 3; j++) sum[j] += sample[j];
  }
  for (int j = 0; j < 3 && !bare; j++) to[j] = (uint8_t)(sum[j] / 4);
}

/* Darken what is behind the solids in a row of pixels: by its occlusion, and where the floor lies in their shadow. */
static void darken(const Frame *f, const float *keep, int r, Span at) {
  const Picture *p = f->p;
  const Rect cast = f->cast;
  uint8_t *to = p->image + (int64_t)3 * r * (p->width / 2);
  const int shady = p->has_floor && 2 * r >= cast.top && 2 * r < cast.bottom;
  const Span s = shady ? (Span){cast.left / 2, cast.right / 2} : (Span){0, 0};
  for (int c = s.left; c < s.right; c++) f->t[c] = 1 / floor_at(&f->to_floor, p->view, c, r), f->dark[c] = 0;
  for (int k = 0; k < 2; k++) find_shadows(p, &f->to_light, f->light.depth, f->t, r, s, k + 0.5f, f->dark);
  for (int c = at.left; c < at.right; c++) {
    float kept = keep[c];
    if (c >= s.left && c < s.right && f->t[c] > 0) kept *= 1 - (float)p->view[DARK] * f->dark[c] / 2;
    if (kept != 1)
      for (int k = 0; k < 3; k++) to[3 * c + k] = (uint8_t)(to[3 * c + k] * kept);
  }
}

/* Darken and colour the pixels of row r.   keep: the part of its brightness that each keeps beside others. */
static void paint(Frame *f, int r, const float *keep) {
  const Picture *p = f->p;
  const int width = p->width;
  const Span s = f->spans[r], samples = {2 * s.left, 2 * s.right};
  const float *near = f->near + (int64_t)r * (width / 2);
  darken(f, keep, r, (Span){f->all.left / 2, f->all.right / 2});
  if (s.left >= s.right) return;
  for (int k = 0; k < 2; k++) {
    const int row = 2 * r + k;
    const int64_t up = row > 0 ? -width : 0, down = row < p->height - 1 ? width : 0;
    find_edges(f->eye.depth + (int64_t)row * width, up, down, width, samples, (float)p->view[SCALE], f->ink + k * width);
  }
  for (int c = s.left; c < s.right; c++) f->t[c] = 1 / near[c], f->dark[c] = 0;
  find_shadows(p, &f->to_light, f->light.depth, f->t, r, s, 1, f->dark);
  for (int c = s.left; c < s.right; c++) {
    const float *const d = f->eye.depth + (int64_t)2 * r * width + 2 * c;
    if (f->n_clear || d[0] > 0 || d[1] > 0 || d[width] > 0 || d[width + 1] > 0)
      colour(f, p->image + 3 * ((int64_t)r * (width / 2) + c), keep[c], f->dark[c], c, r);
  }
}

/* Paint all rows, those of a row of blocks together. */
static void paint_all(Frame *f) {
  const Blocks b = f->blocks;
  const int width = f->p->width / 2, left = f->all.left / 2, top = f->all.top / 2;
  const float *corner = f->near + (int64_t)top * width + left;
  const float reach = (float)f->p->view[REACH];
  float *const keep[2] = {f->keep, f->keep + width + 1}; /* by pixel; a last block may be half beside the picture */
  for (int j = 0; j < b.height; j++) {
    for (int i = 0; i < b.width; i++) {
      const int busy = b.busy[(int64_t)j * b.width + i];
      const Four four = busy ? smoothed(b, corner, width, i, j, reach) : (Four){1, 1, 1, 1};
      for (int k = 0; k < 4; k++) keep[k / 2][left + 2 * i + k % 2] = four[k];
    }
    for (int k = 0; k < 2 && top + 2 * j + k < f->all.bottom / 2; k++) paint(f, top + 2 * j + k, keep[k]);
  }
}

int pfaffian_picture(const Picture *p) {
  const double *v = p->view, zero[3] = {v[EYE], v[EYE + 1], v[EYE + 2]};
  const int width = p->width, height = p->height, size = p->map, margin = 2 * (int)v[MARGIN];
  const int64_t pixels = (int64_t)width * height;
  float *depth = p->work, *map = depth + pixels + 8, *near = map + (int64_t)size * size + 8, *open = near + pixels / 4;
  int32_t *id = (int32_t *)(open + pixels / 4);
  const Rect nothing = {width, 0, height, 0};
  Frame f = {
    .p = p, .eye = {depth, id, width, height}, .light = {map, 0, size, size}, .near = near,
    .over = {(float *)(id + pixels + 8), id + 2 * (pixels + 8), width, height},
    .to_light = ray_of(p, v + LIGHT_AXES, 3, v + LIGHT_CENTRE), .to_floor = ray_of(p, v + NORMAL, 1, zero),
    .solid = nothing, .cast = nothing, .spans = malloc(sizeof(Span) * height / 2 + 4),
    .seen = malloc(sizeof(float) * 3 * p->n_vertices + 4), .lit = malloc(sizeof(float) * 3 * p->n_vertices + 4),
    .shade = malloc(sizeof(float) * 2 * p->n_faces + 4), .clear = malloc(sizeof(int32_t) * p->n_faces + 4),
    .ink = malloc(sizeof(float) * 2 * width), .keep = malloc(sizeof(float) * (width + 4)), .t = malloc(sizeof(float) * width),
    .dark = malloc(width),
  };
  const int failed = !(f.spans && f.seen && f.lit && f.shade && f.clear && f.ink && f.keep && f.t && f.dark);
  if (!failed) {
    f.to_light.lit = (Rect){size, 0, size, 0};
    memcpy(p->image, p->behind, (size_t)3 * pixels / 4);
    place_points(&f);
    f.all.left = lower(f.solid.left, f.cast.left), f.all.right = higher(f.solid.right, f.cast.right);
    f.all.top = lower(f.solid.top, f.cast.top), f.all.bottom = higher(f.solid.bottom, f.cast.bottom);
    clip(&f.to_light.lit, 2, size, size), clip(&f.solid, 2, width, height), clip(&f.cast, 8, width, height);
    clip(&f.all, margin + 8, width, height);
    f.blocks = (Blocks){.open = open, .width = (f.all.right - f.all.left + 2) / 4, .height = (f.all.bottom - f.all.top + 2) / 4};
    f.blocks.busy = (uint8_t *)(open + (int64_t)f.blocks.width * f.blocks.height);
    clear_buffers(&f);
    scan_triangles(&f);
    find_near(&f);
    if (p->has_floor) add_floor(&f);
    occlude(&f);
    paint_all(&f);
  }
  free(f.spans), free(f.seen), free(f.lit), free(f.shade), free(f.clear), free(f.ink), free(f.keep), free(f.t), free(f.dark);
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
