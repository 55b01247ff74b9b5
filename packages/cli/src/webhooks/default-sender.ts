/** Who a sample message is from, where nobody says. */
import type { Channel } from '@sluice/sdk'

/** Reserved for examples: it is nobody's. */
const NUMBER = '+12025550143'
const NAME = 'operator'

/** The first of the allowlist; where that is a mail domain, or there is none, somebody plausible. */
export function defaultSender({ allow, normalise, matches }: Pick<Channel, 'allow' | 'normalise' | 'matches'>): string {
  const first = allow.find((entry) => entry !== '*')
  if (first !== undefined) return matches && !/[^@]@/.test(first) ? `${NAME}@${first.replace(/^@/, '')}` : first
  if (normalise?.('+1 (202) 555-0143') === NUMBER) return NUMBER
  return matches ? `${NAME}@example.com` : NAME
}
