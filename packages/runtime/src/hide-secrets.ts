/** Masks the configured secrets in all text that leaves the daemon: platforms quote requests, and people paste keys. */
import { type Secret, secretMask } from '@sluice/sdk'

/** Returns the text or plain data with the secrets in every text masked. */
export type HideSecrets = <Value>(value: Value) => Value

export const noSecrets: HideSecrets = (value) => value

/** `secrets` returns the values in use now. */
export function createHideSecrets(secrets: () => readonly Secret[]): HideSecrets {
  return <Value>(value: Value): Value => {
    const used = secrets()
    if (used.length === 0) return value
    // The secrets are sorted once for all texts of an event, not for each.
    const mask = secretMask(used.map((secret) => secret.reveal()))
    const hidden = (part: unknown): unknown => {
      if (typeof part === 'string') return mask(part)
      if (Array.isArray(part)) return part.map(hidden)
      if (typeof part !== 'object' || part === null || 'toJSON' in part) return part
      return Object.fromEntries(Object.entries(part).map(([name, member]) => [name, hidden(member)]))
    }
    return hidden(value) as Value
  }
}
