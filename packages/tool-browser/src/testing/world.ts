/** Builds the feature with a host that resolves only the names a test defines, so that a browser reaches only local servers. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isPublicAddress } from '@sluice/kit'
import { testChromium } from '@sluice/qa/chromium'
import { AppError, type ClientId, type Host, type ToolReport } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import native from '@sluice/tool-browser-native'
import * as v from 'valibot'
import { browserSection } from '../config.ts'
import feature from '../index.ts'

/** The installed browser, or the reason why tests with a browser are skipped. */
export const foundChromium = await testChromium()
/** Appended to the titles of skipped tests. */
export const skipNote = 'missing' in foundChromium ? ` (skipped: ${foundChromium.missing})` : ''

export interface WorldOptions {
  /** The section `[browser]` as parsed from TOML. */
  readonly config: object
  /** The addresses of names. Other names do not resolve. */
  readonly names?: Readonly<Record<string, readonly string[]>>
  /** Hosts that may have private addresses, like `[http] allow_private`. */
  readonly exempt?: readonly string[]
  readonly host?: Parameters<typeof testHost>[0]
}

export interface World {
  readonly host: TestHost
  run(input: object, options?: { readonly client?: string; readonly signal?: AbortSignal }): Promise<string>
  readonly reports: readonly ToolReport[]
  check(): ReturnType<NonNullable<ReturnType<typeof feature.build>['check']>>
  close(): Promise<void>
}

/** Implements `Host.publicAddresses` for the given names. */
export const addressesOf = ({
  names = {},
  exempt = [],
}: {
  readonly names?: WorldOptions['names']
  readonly exempt?: WorldOptions['exempt']
}): Host['publicAddresses'] => {
  return async (given) => {
    const name = given.replace(/^\[|\]$/g, '').replace(/\.$/, '')
    const addresses = isIP(name) ? [name] : (names[name] ?? [])
    if (addresses.length === 0) throw new AppError('upstream', `'${name}' has no address`)
    if (!exempt.includes(name) && !addresses.every(isPublicAddress)) throw new AppError('forbidden', `'${name}' is not a public address`)
    return addresses.map((address) => ({ address, family: isIP(address) }))
  }
}

export function createWorld({ config, names = {}, exempt = [], host: given = {} }: WorldOptions): World {
  const { services } = native.build(testHost(), {})
  const host = testHost({ publicAddresses: addressesOf({ names, exempt }), ...(services && { services }), ...given })
  const parts = feature.build(host, v.parse(browserSection.schema, { enabled: true, ...config }))
  const [tool] = parts.tools ?? []
  if (!tool) throw new Error('The feature has no tool')
  const reports: ToolReport[] = []
  return {
    host,
    reports,
    async run(input, { client = 'client', signal } = {}) {
      const context = {
        ...toolContext(signal, host.by),
        client: client as ClientId,
        report: (report: ToolReport) => void reports.push(report),
      }
      return tool.run(v.parse(tool.input, input), context)
    },
    check: async () => parts.check?.(new AbortController().signal) ?? [],
    close: async () => parts.close?.(),
  }
}

/** Returns a configuration for the real browser, and a new data directory. Call `remove` at the end. */
export async function chromiumSetup(): Promise<{
  readonly config: { readonly backend: string; readonly native_chrome_path: string }
  readonly dataDir: string
  remove(): Promise<void>
}> {
  if ('missing' in foundChromium) throw new Error(foundChromium.missing)
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-browser-'))
  const { path, env } = foundChromium
  const program = join(dataDir, 'chromium')
  const exports = Object.entries(env).map(([name, value]) => `export ${name}='${value}'\n`)
  await writeFile(program, `#!/bin/sh\n${exports.join('')}exec '${path}' "$@"\n`)
  await chmod(program, 0o755)
  const config = { backend: 'native', native_chrome_path: program }
  return { config, dataDir, remove: () => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }) }
}
