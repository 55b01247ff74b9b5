/** The schemes by which channels and webhook triggers verify the origin of a request. */
import type { Random } from '@sluice/testkit/random'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { WEBHOOKS } from '../channels.ts'
import { SENDER_FUZZ } from './sender-schemes.ts'

/** The schemes by name; each creates its valid requests from random numbers. */
export const SCHEMES: ReadonlyMap<string, (random: Random) => Scheme | Promise<Scheme>> = new Map([
  ...WEBHOOKS.flatMap(({ webhook }) => Object.entries(webhook.schemes)),
  ...SENDER_FUZZ,
])

/** Throws for an unknown name. */
export async function schemeOf(name: string, random: Random): Promise<Scheme> {
  const make = SCHEMES.get(name)
  if (!make) throw new Error(`unknown scheme '${name}'`)
  return make(random)
}
