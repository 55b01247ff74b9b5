/** Test support: a broker that a test controls packet by packet, for cases that a real broker does not produce on demand. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { encode, encodePublish, type Publish, packetReader, TYPES, type WirePacket } from './packets.ts'

export interface ScriptedBroker {
  readonly url: string
  /** The packets of all connections, in order. */
  readonly received: readonly WirePacket[]
  readonly connections: number
  /** Publishes on the newest connection. */
  publish(message: Publish): void
  /** Sends bytes on the newest connection. */
  send(bytes: Uint8Array): void
  answerPings: boolean
  cut(): void
  close(): Promise<void>
}

export interface Script {
  /** Returns the code of CONNACK, or null to send no answer. Default: accepts the connection. */
  readonly returnCode?: () => number | null
  readonly sessionPresent?: () => boolean
  /** Returns the granted level in SUBACK. Default: QoS 1. */
  readonly grant?: (filter: string) => number
}

export async function scriptedBroker({
  returnCode = () => 0,
  sessionPresent = () => true,
  grant = () => 1,
}: Script = {}): Promise<ScriptedBroker> {
  const received: WirePacket[] = []
  const sockets: Socket[] = []
  const answer = ({ type, body }: WirePacket): Buffer | undefined => {
    switch (type) {
      case TYPES.connect: {
        const code = returnCode()
        return code === null ? undefined : encode(TYPES.connack, [sessionPresent() ? 1 : 0, code])
      }
      case TYPES.subscribe:
        return encode(TYPES.suback, [...body.subarray(0, 2), ...filtersOf(body).map(grant)])
      case TYPES.unsubscribe:
        return encode(TYPES.unsuback, body.subarray(0, 2))
      case TYPES.pingreq:
        return broker.answerPings ? encode(TYPES.pingresp) : undefined
      default:
        return undefined
    }
  }
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on(
      'data',
      packetReader((packet) => {
        received.push(packet)
        const reply = answer(packet)
        if (reply) socket.write(reply)
      }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const broker: ScriptedBroker = {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    get connections() {
      return sockets.length
    },
    publish: (message) => broker.send(encodePublish(message)),
    send: (bytes) => void sockets.at(-1)?.write(bytes),
    answerPings: true,
    cut,
    async close() {
      server.close()
      cut()
      await once(server, 'close')
    },
  }
  return broker
}

/** Returns the filters in the body of SUBSCRIBE, which follow the packet id, each with its QoS. */
export function filtersOf(body: Buffer): string[] {
  const filters: string[] = []
  for (let at = 2; at < body.length; ) {
    const end = at + 2 + body.readUInt16BE(at)
    filters.push(body.toString('utf8', at + 2, end))
    at = end + 1
  }
  return filters
}
