/* The start-up code before `main`, which initialises memory, and the vector table. */
#include <stdint.h>

extern uint32_t data_source[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
int main(void);

void start(void) {
  const uint32_t *from = data_source;
  for (uint32_t *to = data_start; to < data_end; to++) *to = *from++;
  for (uint32_t *to = bss_start; to < bss_end; to++) *to = 0;
  main();
  for (;;) {
  }
}

static void stop(void) {
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static void *const VECTORS[16] = {stack_top, start, stop, stop, stop, stop, stop};
