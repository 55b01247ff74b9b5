/** Checks what no schema can: whether a provider of this build accepts the settings of the configuration. */

import { type ConfigSource, providerSection, readSourceConfig } from '@sluice/config'
import { AppError, type Host, type Provider, rowOf } from '@sluice/sdk'

/** Providers of the catalogue use neither a host nor a section of their own when they are built. */
const NO_HOST = Object.freeze({}) as Host

/** Returns the providers of the catalogue that a build has. Loads no wire format. */
export const catalogueProviders = (features: ConfigSource['features']): Provider[] =>
  features.filter(({ id }) => rowOf(id)?.kinds).flatMap(({ build }) => build(NO_HOST, {}).providers ?? [])

/** Why the daemon would refuse the providers of the file, in one sentence; undefined if it accepts them. Opens only the file. */
export async function providerProblem(source: ConfigSource): Promise<string | undefined> {
  const { features, env } = source
  // A feature outside the catalogue may bring any provider kind, and may need a host.
  if (features.some(({ id }) => rowOf(id) === undefined)) return undefined
  const config = await readSourceConfig(source)
  const { chooseProviders } = await import('@sluice/agent')
  const providers = catalogueProviders(features)
  try {
    chooseProviders(config.core(providerSection), providers, env)
    return undefined
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
}
