/** The feature's tools on given native packages, called as the daemon calls them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientId, DeviceRecord, Parts, Risk, ToolReport } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterAll } from 'vitest'
import { buildAdapter } from '../build-adapter.ts'
import { adapterSection } from '../config.ts'
import type { Native } from '../native.ts'
import { fakeNative } from './fake-native.ts'

export interface HardwareKit {
  readonly host: TestHost
  readonly parts: Parts
  /** What was to be written, in order. */
  readonly audited: DeviceRecord[]
  readonly reports: ToolReport[]
  /** A folder that stands for the root: `dev`, `sys`. */
  readonly root: string
  run(tool: string, input: object, call?: { readonly client?: string; readonly signal?: AbortSignal }): Promise<string>
  risk(tool: string, input: object): Risk
  available(): boolean
}

export interface KitOptions {
  readonly config?: object
  readonly native?: Partial<Native>
  readonly host?: TestHostOverrides
  readonly root?: string
  readonly platform?: NodeJS.Platform
}

const roots: string[] = []
// The cases for a virtual machine use this kit without the test runner; their machine is thrown away.
if (process.env.VITEST !== undefined) {
  afterAll(() => {
    for (const root of roots) rmSync(root, { recursive: true, force: true })
  })
}

/** Makes a folder that is removed after the tests of the file. */
export function temporaryRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'sluice-adapter-'))
  roots.push(root)
  return root
}

export function hardwareKit(options: KitOptions = {}): HardwareKit {
  const { config = { adapter: { transport: 'sim' } }, native, host: overrides, root = temporaryRoot(), platform = 'linux' } = options
  const audited: DeviceRecord[] = []
  const reports: ToolReport[] = []
  const audit = async (record: DeviceRecord) => void audited.push(record)
  const host = testHost({ dataDir: join(root, 'data'), ...overrides, services: { audit, ...overrides?.services } })
  const places = { platform, sys: join(root, 'sys'), dev: join(root, 'dev') }
  const parts = buildAdapter(host, v.parse(adapterSection.schema, config), { native: fakeNative(native), places })
  const named = (name: string) => {
    const found = (parts.tools ?? []).find((tool) => tool.name === name)
    if (!found) throw new Error(`there is no tool ${name}`)
    return found
  }
  return {
    host,
    parts,
    audited,
    reports,
    root,
    async run(name, input, { client = 'one', signal } = {}) {
      const tool = named(name)
      const context = { ...toolContext(signal), client: client as ClientId, report: (report: ToolReport) => void reports.push(report) }
      return tool.run(v.parse(tool.input, input), context)
    },
    risk(name, input) {
      const { risk, input: schema } = named(name)
      return typeof risk === 'function' ? risk(v.parse(schema, input)) : risk
    },
    available: () => named('i2c_scan').available?.() ?? true,
  }
}
