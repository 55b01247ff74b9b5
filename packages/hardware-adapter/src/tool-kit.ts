/** What the adapter's tools have in common: which adapter is meant, who may use it, and what stands below every answer. */
import type { DeviceGuard, DeviceUse } from '@sluice/hardware'
import { AppError, sha256Hex, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { Adapter } from './adapter.ts'
import type { Adapters } from './adapters.ts'

export interface ToolKit {
  readonly adapters: Adapters
  readonly guard: DeviceGuard
}

export const deviceKey = v.optional(
  v.pipe(v.string(), v.regex(/^adapter\d{1,4}$/, 'an alias such as adapter0'), v.description('Which adapter; default: the only one')),
)

/** Those that no standard keeps for other uses. */
export const addressKey = v.pipe(whole(0x08, 0x77), v.description('7-bit address as a number: 72 for 0x48'))

export const byte = whole(0, 255)

export type AdapterPart = 'i2c' | 'spi' | 'gpio'

const PART_NAMES: Readonly<Record<AdapterPart, string>> = { i2c: 'I2C', spi: 'SPI', gpio: 'GPIO lines' }

export interface PartUse extends Pick<DeviceUse, 'tool' | 'context' | 'write' | 'pins'> {
  readonly device: string | undefined
}

/** Runs one transaction on a part of an adapter, under the device's lease. Throws `unavailable` where the adapter has no such part. */
export async function usePart<Part extends AdapterPart, Result>(
  { adapters, guard }: ToolKit,
  part: Part,
  { device, ...use }: PartUse,
  work: (bus: NonNullable<Adapter[Part]>) => Promise<Result>,
): Promise<{ readonly result: Result; readonly notes: string }> {
  const { alias, adapter, notes } = await adapters.pick(device)
  const bus = adapter[part]
  if (bus === undefined) throw noPart(alias, adapter, part)
  const result = await guard.use({ device: alias, ...use }, () => work(bus as NonNullable<Adapter[Part]>))
  return { result, notes: notes.map((note) => `\nNote: ${note}`).join('') }
}

/** For `Tool.precheck`. Throws where no such adapter is connected or it has no such part. */
export const partIsThere =
  ({ adapters }: ToolKit, part: AdapterPart) =>
  async ({ device }: { readonly device?: string | undefined }): Promise<void> => {
    const { alias, adapter } = await adapters.pick(device)
    if (adapter[part] === undefined) throw noPart(alias, adapter, part)
  }

const noPart = (alias: string, { name }: Adapter, part: AdapterPart): AppError =>
  new AppError('unavailable', `${alias} (${name}) has no ${PART_NAMES[part]}`)

/** Shown in full in the audit log. */
const RECORDED_BYTES_MAX = 64

/** Written bytes for the audit log: all of a few, of many the first and a hash of all. */
export const recordedBytes = (bytes: readonly number[]): Readonly<Record<string, unknown>> => ({
  length: bytes.length,
  bytes: Buffer.from(bytes.slice(0, RECORDED_BYTES_MAX)).toString('hex'),
  ...(bytes.length > RECORDED_BYTES_MAX && { sha256: sha256Hex(Uint8Array.from(bytes)) }),
})
