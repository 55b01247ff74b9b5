/** The common parts of the adapter tools: input schemas, the choice of the adapter and access to it under its lease. */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, sha256Hex, type ToolContext, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { Adapter } from '../adapter.ts'
import type { Adapters } from '../adapters.ts'

export interface ToolKit {
  readonly adapters: Adapters
  readonly guard: DeviceGuard
}

export const deviceKey = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^adapter\d{1,4}$/, 'an alias such as adapter0'),
    v.description('Alias of the adapter; not needed when only one is connected'),
  ),
)

/** The addresses that the I2C standard does not reserve. */
export const addressKey = v.pipe(whole(0x08, 0x77), v.description('7-bit address as a number: 72 for 0x48'))

export const byte = whole(0, 255)

export type AdapterPart = 'i2c' | 'spi' | 'gpio'

const PART_NAMES: Readonly<Record<AdapterPart, string>> = { i2c: 'I2C', spi: 'SPI', gpio: 'GPIO lines' }

export interface PartUse {
  /** The alias of the adapter; undefined for the only one. */
  readonly device: string | undefined
  readonly tool: string
  readonly context: ToolContext
  /** The data that the call writes, for the audit log. Absent when it only reads. */
  readonly write?: Readonly<Record<string, unknown>>
  /** The GPIO lines that the call writes. */
  readonly pins?: readonly number[]
}

/**
 * Runs one transaction on a part of an adapter, under the adapter's lease. Returns the result and notes for the end of the tool's
 * answer. Throws `unavailable` when the adapter does not have the part.
 */
export async function usePart<Part extends AdapterPart, Result>(
  { adapters, guard }: ToolKit,
  part: Part,
  { device, ...use }: PartUse,
  work: (bus: NonNullable<Adapter[Part]>) => Promise<Result>,
): Promise<{ readonly result: Result; readonly notes: string }> {
  const { alias, adapter, notes } = await adapters.pick(device)
  const bus = adapter[part]
  if (bus === undefined) throw partMissing(alias, adapter, part)
  const result = await guard.use({ device: alias, ...use }, () => work(bus as NonNullable<Adapter[Part]>))
  return { result, notes: notes.map((note) => `\nNote: ${note}`).join('') }
}

/** Returns a `Tool.precheck` that throws when the adapter is not connected or does not have the part. */
export const requirePart =
  ({ adapters }: ToolKit, part: AdapterPart) =>
  async ({ device }: { readonly device?: string | undefined }): Promise<void> => {
    const { alias, adapter } = await adapters.pick(device)
    if (adapter[part] === undefined) throw partMissing(alias, adapter, part)
  }

export const partMissing = (alias: string, { name }: Adapter, part: AdapterPart): AppError =>
  new AppError('unavailable', `${alias} (${name}) has no ${PART_NAMES[part]}`)

/** The bytes that the audit log shows. */
const AUDITED_BYTES_MAX = 64

/** Describes written bytes for the audit log. A long write is recorded as its first bytes and a hash of all bytes. */
export const auditedBytes = (bytes: readonly number[]): Readonly<Record<string, unknown>> => ({
  length: bytes.length,
  bytes: Buffer.from(bytes.slice(0, AUDITED_BYTES_MAX)).toString('hex'),
  ...(bytes.length > AUDITED_BYTES_MAX && { sha256: sha256Hex(Uint8Array.from(bytes)) }),
})
