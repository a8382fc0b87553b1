// Vectors that wait in memory while a lane walks others: an array for each of their words. A software
// driver reaches the places of an array lane by lane and word by word, at the cost of some loads; so
// places are to be found once (docs/notes/kernels-on-lavapipe.md).

#define WORD_ARRAYS(name, places)  \
  static uint name##_x[places];    \
  static uint name##_y[places];    \
  static uint name##_z[places];    \
  static uint name##_w[places];
#define READ_WORDS(name, i) uint4(name##_x[i], name##_y[i], name##_z[i], name##_w[i])
#define WRITE_WORDS(name, i, words) \
  name##_x[i] = (words).x;          \
  name##_y[i] = (words).y;          \
  name##_z[i] = (words).z;          \
  name##_w[i] = (words).w;
