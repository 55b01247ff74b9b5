/** A browser in a world of two: a host that resolves the names a test gives it, and servers on this machine alone. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isPublicAddress } from '@sluice/kit'
import { testChromium } from '@sluice/qa/chromium'
import { AppError, type ClientId, type Host, type ToolReport } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { browserSection } from '../config.ts'
import feature from '../index.ts'

/** The browser, or why there is none, as the end of a sentence. */
export const foundChromium = await testChromium()
export const whyNot = 'missing' in foundChromium ? ` (left out: ${foundChromium.missing})` : ''

export interface WorldOptions {
  /** `[browser]` as TOML has it. */
  readonly config: object
  /** What names resolve to; any other does not. */
  readonly names?: Readonly<Record<string, readonly string[]>>
  /** As `[http] allow_private`. */
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

/** As the gateway has it. */
export const addressesOf = ({ names = {}, exempt = [] }: Pick<WorldOptions, 'names' | 'exempt'>): Host['publicAddresses'] => {
  return async (given) => {
    const name = given.replace(/^\[|\]$/g, '').replace(/\.$/, '')
    const addresses = isIP(name) ? [name] : (names[name] ?? [])
    if (addresses.length === 0) throw new AppError('upstream', `'${name}' has no address`)
    if (!exempt.includes(name) && !addresses.every(isPublicAddress)) throw new AppError('forbidden', `'${name}' is not a public address`)
    return addresses.map((address) => ({ address, family: isIP(address) }))
  }
}

export function createWorld({ config, names = {}, exempt = [], host: given = {} }: WorldOptions): World {
  const host = testHost({ publicAddresses: addressesOf({ names, exempt }), ...given })
  const parts = feature.build(host, v.parse(browserSection.schema, { enabled: true, ...config }))
  const [tool] = parts.tools ?? []
  if (!tool) throw new Error('there is no tool')
  const reports: ToolReport[] = []
  return {
    host,
    reports,
    async run(input, { client = 'client', signal } = {}) {
      const context = { ...toolContext(signal), client: client as ClientId, report: (report: ToolReport) => void reports.push(report) }
      return tool.run(v.parse(tool.input, input), context)
    },
    check: async () => parts.check?.(new AbortController().signal) ?? [],
    close: async () => parts.close?.(),
  }
}

/** `[browser]` for the real browser, and a folder for it. */
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
