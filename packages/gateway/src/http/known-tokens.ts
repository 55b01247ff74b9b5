/** Tokens found good a moment ago, so that a busy device does not ask the store at each request. */
import { BoundedMap, type Clock, type DeviceRow } from '@sluice/sdk'

/** Another process's revocation may go unnoticed for this long; one of this process is told. */
const TRUST_MS = 20
const TOKENS_MAX = 1000

export interface KnownTokens {
  get(tokenHash: string): DeviceRow | undefined
  set(tokenHash: string, device: DeviceRow): void
  clear(): void
}

export function createKnownTokens(clock: Pick<Clock, 'monotonicMs'>): KnownTokens {
  const known = new BoundedMap<string, { readonly device: DeviceRow; readonly untilMs: number }>(TOKENS_MAX)
  return {
    get(tokenHash) {
      const found = known.get(tokenHash)
      return found && clock.monotonicMs() < found.untilMs ? found.device : undefined
    },
    set: (tokenHash, device) => void known.set(tokenHash, { device, untilMs: clock.monotonicMs() + TRUST_MS }),
    clear: () => known.clear(),
  }
}
