/** Returns the section of a channel as TOML. */
import type { SectionValues } from '@sluice/testkit/section-values'

export const sectionToml = (channel: string, values: SectionValues): string =>
  [`[channels_config.${channel}]`, ...Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`), ''].join('\n')
