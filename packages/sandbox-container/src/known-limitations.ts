/** The escape rules that depend on the engine. The table in docs/sandboxes.md repeats them, and a test compares the two. */
export const KNOWN_LIMITATIONS = [
  {
    rule: 'the network: no socket for the hypervisor',
    why: "the engine's own filter decides; Docker refuses such sockets since version 23",
  },
  {
    rule: 'the kernel: io_uring is refused',
    why: "the engine's own filter decides; Docker refuses io_uring since version 25",
  },
] as const
