// A program with a defect, to see that the sanitizer that this was built with finds it.

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int shared;

static void *touch(void *argument) {
  shared += 1;
  return argument;
}

static int race(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, touch, NULL)) return 1;
  shared += 1;
  pthread_join(thread, NULL);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  volatile int *volatile numbers = malloc(4 * sizeof *numbers);
  if (!numbers) return 2;
  volatile int large = INT_MAX;
  if (strcmp(argv[1], "overflow") == 0) large = large + 1;
  if (strcmp(argv[1], "bounds") == 0) numbers[4] = large;
  if (strcmp(argv[1], "race") == 0) race();
  if (strcmp(argv[1], "leak") == 0)
    numbers = NULL;
  else
    free((void *)numbers);
  return 0;
}
