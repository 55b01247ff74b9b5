/** Test support: enough of the MQTT 3.1.1 wire format to watch a connection or to act as a broker. */

export interface WirePacket {
  /** The high half of the first byte, one of `TYPES`. */
  readonly type: number
  readonly flags: number
  readonly body: Buffer
}

export const TYPES = {
  connect: 1,
  connack: 2,
  publish: 3,
  puback: 4,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
} as const

/** Returns a function that splits a stream of bytes into packets of any length. */
export function packetReader(onPacket: (packet: WirePacket) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = headOf(rest)
      if (!head || rest.length < head.bytes + head.length) return
      const first = rest.readUInt8(0)
      const body = Buffer.from(rest.subarray(head.bytes, head.bytes + head.length))
      rest = rest.subarray(head.bytes + head.length)
      onPacket({ type: first >> 4, flags: first & 15, body })
    }
  }
}

function headOf(bytes: Buffer): { readonly bytes: number; readonly length: number } | undefined {
  let length = 0
  for (let index = 1; index < bytes.length && index < 5; index++) {
    const byte = bytes.readUInt8(index)
    length += (byte & 127) * 128 ** (index - 1)
    if (byte < 128) return { bytes: index + 1, length }
  }
  return undefined
}

export function encode(type: number, body: Buffer | readonly number[] = [], flags = 0): Buffer {
  const length: number[] = []
  for (let rest = body.length; length.length === 0 || rest > 0; rest >>= 7) length.push((rest & 127) | (rest > 127 ? 128 : 0))
  return Buffer.concat([Buffer.from([(type << 4) | flags, ...length]), Buffer.from(body)])
}

export interface Publish {
  readonly topic: string
  readonly payload: string | Uint8Array
  readonly id: number
  readonly dup?: boolean
}

/** Encodes a PUBLISH packet with QoS 1. */
export const encodePublish = ({ topic, payload, id, dup = false }: Publish): Buffer =>
  encode(
    TYPES.publish,
    Buffer.concat([word(Buffer.byteLength(topic)), Buffer.from(topic), word(id), Buffer.from(payload)]),
    2 | (dup ? 8 : 0),
  )

export const word = (value: number): Buffer => Buffer.from([value >> 8, value & 255])
