/** What of the escapes firejail does not stop, by rule; stands in docs/sandboxes.md too. */
export const NOT_PROMISED = [
  {
    rule: 'resources: the size of private folders is bounded',
    why: 'its private folders have no size of their own; they count as memory where control groups bound that',
  },
] as const
