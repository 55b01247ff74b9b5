/** Builds the feature with the native packages of a test and calls its tools as the daemon does. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientId, DeviceRecord, Parts, Risk, ToolReport } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { buildAdapter } from '../build-adapter.ts'
import { adapterSection } from '../config.ts'
import type { Native } from '../native.ts'
import { fakeNative } from './fake-native.ts'

export interface HardwareKit {
  readonly host: TestHost
  readonly parts: Parts
  /** The records of the audit log, in order. */
  readonly audited: DeviceRecord[]
  readonly reports: ToolReport[]
  /** The folder that contains `dev`, `sys` and `data`. */
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
/** Removes the temporary folders. Each test file that uses one calls it after its tests. */
export function removeRoots(): void {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
}

/** Creates a folder, which `removeRoots` removes. The cases for a virtual machine leave theirs to the end of the machine. */
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
  const paths = { platform, sys: join(root, 'sys'), dev: join(root, 'dev') }
  const parts = buildAdapter(host, v.parse(adapterSection.schema, config), { native: fakeNative(native), paths })
  const toolNamed = (name: string) => {
    const found = (parts.tools ?? []).find((tool) => tool.name === name)
    if (!found) throw new Error(`unknown tool ${name}`)
    return found
  }
  return {
    host,
    parts,
    audited,
    reports,
    root,
    async run(name, input, { client = 'one', signal } = {}) {
      const tool = toolNamed(name)
      const context = { ...toolContext(signal), client: client as ClientId, report: (report: ToolReport) => void reports.push(report) }
      return tool.run(v.parse(tool.input, input), context)
    },
    risk(name, input) {
      const { risk, input: schema } = toolNamed(name)
      return typeof risk === 'function' ? risk(v.parse(schema, input), host.by) : risk
    },
    available: () => toolNamed('i2c_scan').available?.() ?? true,
  }
}
