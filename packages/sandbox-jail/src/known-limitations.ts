/** The escape rules that firejail does not enforce. The table in docs/sandboxes.md repeats them, and a test compares the two. */
export const KNOWN_LIMITATIONS = [
  {
    rule: 'resources: the size of private folders is bounded',
    why: 'firejail sets no size for private folders; control groups count them as memory',
  },
] as const
