/** The options that every way to embed Sluice shares. */
import { join, resolve } from 'node:path'
import type { ConfigValues } from '@sluice/config'
import type { Feature, Logger } from '@sluice/sdk'
import manifest from '../package.json' with { type: 'json' }
import type { RuntimeOptions } from './runtime/open-runtime.ts'

export interface EmbeddingOptions {
  /** The features of this instance, such as the default exports of `@sluice/provider-openai` and `@sluice/tool-files`. */
  readonly features: readonly Feature[]
  /** The folder of the database, the keys and the workspace; made if it does not exist. One instance at a time can use it. */
  readonly dataDir: string
  /**
   * The path of a TOML file, or the sections of such a file as an object, which cannot change. Default: the file `config.toml` in
   * `dataDir`, if it exists.
   */
  readonly config?: string | ConfigValues
  /** Environment variables that replace keys of the configuration, such as `process.env`. Default: none. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Gets every log line of `[log] level` and above, with secrets masked; `false` drops them. Default: lines on standard error. */
  readonly logger?: Logger | false
  /**
   * Sends the requests of channels, providers and tools that name their address themselves. Default: the global `fetch`. Requests to
   * addresses that a model or a sender names do not use it: their addresses are checked.
   */
  readonly fetch?: typeof fetch
  /** The name of the build in status and traces. Default: `embedded`. */
  readonly profile?: string
}

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export function runtimeOptions({
  features,
  config,
  logger,
  fetch,
  env = {},
  profile = 'embedded',
  ...rest
}: EmbeddingOptions): RuntimeOptions {
  const dataDir = resolve(rest.dataDir)
  return {
    features,
    dataDir,
    configFile: typeof config === 'string' ? resolve(config) : join(dataDir, 'config.toml'),
    ...(typeof config === 'object' && { configValues: config }),
    env,
    profile,
    version: manifest.version,
    logger: logger === false ? SILENT : logger,
    fetch,
  }
}
