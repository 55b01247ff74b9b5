/** Encodes and decodes version 2 of the GPIO character device's ABI (Linux 5.10, linux/gpio.h). Little-endian, like every supported board. */
import type { Direction, EdgeEvent, GpioChip, GpioLineInfo, Level, LineRequest } from './gpio.ts'

/** The ioctl numbers: _IOR and _IOWR of type 0xB4 with the size of the structure and the request's number. */
export const GET_CHIP_INFO = 0x8044b401
export const GET_LINE_INFO = 0xc100b405
export const GET_LINES = 0xc250b407
export const GET_VALUES = 0xc010b40e
export const SET_VALUES = 0xc010b40f

const NAME_BYTES = 32
export const LINES_MAX = 64
export const EVENT_BYTES = 48

const USED = 1n << 0n
const INPUT = 1n << 2n
const OUTPUT = 1n << 3n
const RISING = 1n << 4n
const FALLING = 1n << 5n
const BIAS = { 'pull-up': 1n << 8n, 'pull-down': 1n << 9n, none: 1n << 10n } as const
const EDGES = { rising: RISING, falling: FALLING, both: RISING | FALLING } as const

const ATTRIBUTE_OUTPUT_VALUES = 2
const ATTRIBUTE_DEBOUNCE = 3
const EVENT_RISING = 1

export const chipInfoBuffer = (): Buffer => Buffer.alloc(2 * NAME_BYTES + 4)

export const parseChipInfo = (path: string, info: Buffer): GpioChip => ({
  path,
  label: textAt(info, NAME_BYTES),
  lines: info.readUInt32LE(2 * NAME_BYTES),
})

export function lineInfoBuffer(offset: number): Buffer {
  const info = Buffer.alloc(256)
  info.writeUInt32LE(offset, 64)
  return info
}

export function parseLineInfo(info: Buffer): GpioLineInfo {
  const flags = info.readBigUInt64LE(72)
  const direction: Direction = (flags & OUTPUT) === 0n ? 'input' : 'output'
  return { offset: info.readUInt32LE(64), name: textAt(info, 0), isUsed: (flags & USED) !== 0n, consumer: textAt(info, 32), direction }
}

/** Encodes a request for lines. The kernel writes the descriptor of the lines into this buffer; `lineFdOf` reads it. */
export function linesRequest({ offsets, direction, consumer, levels = [], bias, watch }: LineRequest): Buffer {
  const request = Buffer.alloc(592)
  for (const [index, offset] of offsets.entries()) request.writeUInt32LE(offset, index * 4)
  request.write(consumer, 256, NAME_BYTES - 1)
  request.writeUInt32LE(offsets.length, 560)
  let flags = direction === 'input' ? INPUT : direction === 'output' ? OUTPUT : 0n
  if (bias) flags |= BIAS[bias]
  if (watch) flags |= EDGES[watch.edge]
  request.writeBigUInt64LE(flags, 288)
  const all = mask(offsets.length)
  let attributes = 0
  const attribute = (id: number, value: bigint) => {
    const at = 320 + attributes++ * 24
    request.writeUInt32LE(id, at)
    request.writeBigUInt64LE(value, at + 8)
    request.writeBigUInt64LE(all, at + 16)
  }
  if (direction === 'output') attribute(ATTRIBUTE_OUTPUT_VALUES, bitsOf(levels))
  if (watch?.debounceUs) attribute(ATTRIBUTE_DEBOUNCE, BigInt(watch.debounceUs))
  request.writeUInt32LE(attributes, 296)
  return request
}

export const lineFdOf = (request: Buffer): number => request.readInt32LE(588)

export function valuesBuffer(lines: number, levels: readonly Level[] = []): Buffer {
  const values = Buffer.alloc(16)
  values.writeBigUInt64LE(bitsOf(levels), 0)
  values.writeBigUInt64LE(mask(lines), 8)
  return values
}

export function parseValues(values: Buffer, lines: number): Level[] {
  const bits = values.readBigUInt64LE(0)
  return Array.from({ length: lines }, (_, index) => ((bits >> BigInt(index)) & 1n ? 1 : 0))
}

export const parseEvent = (event: Buffer): EdgeEvent => ({
  atNs: event.readBigUInt64LE(0),
  edge: event.readUInt32LE(8) === EVENT_RISING ? 'rising' : 'falling',
  offset: event.readUInt32LE(12),
  sequence: event.readUInt32LE(16),
})

/** A mask with one bit for each of the first `lines` lines. */
const mask = (lines: number): bigint => (1n << BigInt(lines)) - 1n
const bitsOf = (levels: readonly Level[]): bigint => levels.reduce((bits, level, index) => bits | (BigInt(level) << BigInt(index)), 0n)
/** The kernel's text fields end at the first NUL or at their full size. */
const textAt = (bytes: Buffer, at: number): string => bytes.toString('utf8', at, at + NAME_BYTES).replace(/\0.*$/s, '')
