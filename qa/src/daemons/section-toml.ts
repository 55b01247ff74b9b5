/** Returns the section of a channel as TOML. */
import type { SectionValues } from '@sluice/testkit/section-values'

/** An allowlist of every sender names the given ones too: a sender whom only `*` admits decides nothing. */
export const sectionToml = (channel: string, values: SectionValues, senders: readonly string[] = []): string => {
  const isOpen = (value: unknown): boolean => Array.isArray(value) && value.length === 1 && value[0] === '*'
  const keys = Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(isOpen(value) ? [...senders, '*'] : value)}`)
  return [`[channels_config.${channel}]`, ...keys, ''].join('\n')
}
