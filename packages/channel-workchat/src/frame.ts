/**
 * The binary frames of a long connection, in the encoding of Protocol Buffers: nine fields, one of which repeats. A codec of this one
 * message is much smaller than a library.
 */

export interface Header {
  readonly key: string
  readonly value: string
}

/** A frame. Field numbers as in the platform's definition: SeqID 1, LogID 2, service 3, method 4, headers 5, and so on. */
export interface Frame {
  readonly seqId: bigint
  readonly logId: bigint
  readonly service: number
  /** `CONTROL` or `DATA`. */
  readonly method: number
  readonly headers: readonly Header[]
  readonly payloadEncoding?: string
  readonly payloadType?: string
  readonly payload?: Uint8Array
  readonly logIdNew?: string
}

/** A ping or a pong. */
export const CONTROL = 0
/** An event, a callback, or the answer to one. */
export const DATA = 1

const VARINT = 0
const FIXED_64 = 1
const BYTES = 2
const FIXED_32 = 5
const VARINT_BYTES_MAX = 10
const HEADERS_MAX = 100
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Throws `RangeError` or `TypeError` for bytes that are not a frame. Unknown fields are skipped. */
export function decodeFrame(bytes: Uint8Array): Frame {
  let [seqId, logId, service, method] = [0n, 0n, 0, 0]
  const headers: Header[] = []
  const rest: { -readonly [Name in keyof Frame]?: Frame[Name] } = {}
  for (const { field, number, content } of fieldsIn(bytes)) {
    if (field === 1) seqId = number
    else if (field === 2) logId = number
    else if (field === 3) service = Number(BigInt.asIntN(32, number))
    else if (field === 4) method = Number(BigInt.asIntN(32, number))
    else if (field === 5) headers.push(decodeHeader(content))
    else if (field === 6) rest.payloadEncoding = utf8.decode(content)
    else if (field === 7) rest.payloadType = utf8.decode(content)
    else if (field === 8) rest.payload = content
    else if (field === 9) rest.logIdNew = utf8.decode(content)
    if (headers.length > HEADERS_MAX) throw new RangeError(`the frame has more than ${HEADERS_MAX} headers`)
  }
  return { seqId, logId, service, method, headers, ...rest }
}

export function encodeFrame(frame: Frame): Uint8Array {
  const { payloadEncoding, payloadType, payload, logIdNew } = frame
  return Buffer.concat([
    varintField(1, frame.seqId),
    varintField(2, frame.logId),
    varintField(3, BigInt(frame.service)),
    varintField(4, BigInt(frame.method)),
    ...frame.headers.map(({ key, value }) => bytesField(5, Buffer.concat([textField(1, key), textField(2, value)]))),
    ...(payloadEncoding === undefined ? [] : [textField(6, payloadEncoding)]),
    ...(payloadType === undefined ? [] : [textField(7, payloadType)]),
    ...(payload === undefined ? [] : [bytesField(8, payload)]),
    ...(logIdNew === undefined ? [] : [textField(9, logIdNew)]),
  ])
}

/** Returns the value of a header; empty if the frame has none. */
export const headerOf = ({ headers }: Frame, key: string): string => headers.find((header) => header.key === key)?.value ?? ''

function decodeHeader(bytes: Uint8Array): Header {
  let [key, value] = ['', '']
  for (const { field, content } of fieldsIn(bytes)) {
    if (field === 1) key = utf8.decode(content)
    else if (field === 2) value = utf8.decode(content)
  }
  return { key, value }
}

interface Field {
  readonly field: number
  /** The value of a number; 0 for a field of bytes. */
  readonly number: bigint
  /** The bytes of a field of bytes; empty for a number. */
  readonly content: Uint8Array
}

const NONE = new Uint8Array()

function* fieldsIn(bytes: Uint8Array): Generator<Field> {
  for (let at = 0; at < bytes.length; ) {
    const tag = varintAt(bytes, at)
    const [field, type] = [Number(tag.number >> 3n), Number(tag.number & 7n)]
    if (type === VARINT) {
      const { number, end } = varintAt(bytes, tag.end)
      yield { field, number, content: NONE }
      at = end
      continue
    }
    const size = type === BYTES ? varintAt(bytes, tag.end) : { number: fixedSize(type), end: tag.end }
    const end = size.end + Number(size.number)
    if (end > bytes.length) throw new RangeError('the frame ends inside of a field')
    if (type === BYTES) yield { field, number: 0n, content: bytes.subarray(size.end, end) }
    at = end
  }
}

function fixedSize(type: number): bigint {
  if (type === FIXED_64) return 8n
  if (type === FIXED_32) return 4n
  throw new RangeError(`the frame has a field of the unknown type ${type}`)
}

function varintAt(bytes: Uint8Array, start: number): { readonly number: bigint; readonly end: number } {
  let number = 0n
  for (let index = 0; index < VARINT_BYTES_MAX; index++) {
    const byte = bytes[start + index]
    if (byte === undefined) throw new RangeError('the frame ends inside of a number')
    number |= BigInt(byte & 0x7f) << BigInt(7 * index)
    if (byte < 0x80) return { number: BigInt.asUintN(64, number), end: start + index + 1 }
  }
  throw new RangeError('the frame has a number of more than ten bytes')
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = []
  let left = BigInt.asUintN(64, value)
  for (; left > 0x7fn; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80)
  return Uint8Array.from([...bytes, Number(left)])
}

const tag = (field: number, type: number): Uint8Array => varint(BigInt((field << 3) | type))
const varintField = (field: number, value: bigint): Uint8Array => Buffer.concat([tag(field, VARINT), varint(value)])
const bytesField = (field: number, value: Uint8Array): Uint8Array => Buffer.concat([tag(field, BYTES), varint(BigInt(value.length)), value])
const textField = (field: number, value: string): Uint8Array => bytesField(field, Buffer.from(value))
