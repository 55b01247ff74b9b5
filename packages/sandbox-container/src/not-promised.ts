/** What of the escapes is left to the engine, by rule; stands in docs/sandboxes.md too. */
export const NOT_PROMISED = [
  { rule: 'the network: no socket for the hypervisor', why: "the engine's own filter decides; Docker refuses it from 23 on" },
  { rule: 'the kernel: io_uring is refused', why: "the engine's own filter decides; Docker refuses io_uring from 25 on" },
] as const
