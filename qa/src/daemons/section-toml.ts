/** Returns the section of a channel as TOML. */
import type { SectionValues } from '@sluice/testkit/section-values'

/** Each message is a turn of its own, and each person of a room has a conversation, unless the values say otherwise. */
const ONE_BY_ONE: SectionValues = { batch_ms: 0, steering: 'queue', room_session: 'person' }

/** `operators` are entries of senders who decide calls as operators; an allowlist of every sender then names them too. */
export const sectionToml = (channel: string, values: SectionValues, operators: readonly string[] = []): string => {
  const isOpen = (value: unknown): boolean => Array.isArray(value) && value.length === 1 && value[0] === '*'
  const keys = Object.entries({ ...ONE_BY_ONE, ...values }).map(
    ([key, value]) => [key, isOpen(value) ? [...operators, '*'] : value] as const,
  )
  const all = operators.length === 0 ? keys : [...keys, ['operators', operators] as const]
  return [`[channels_config.${channel}]`, ...all.map(([key, value]) => `${key} = ${JSON.stringify(value)}`), ''].join('\n')
}
