/** Test support: a proxy between the trigger and a broker that records packets and can cut the connection. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { packetReader, type TYPES, type WirePacket } from './packets.ts'

export interface BrokerLine {
  readonly url: string
  /** The packets that the trigger has sent on all connections. */
  readonly sent: readonly WirePacket[]
  count(type: (typeof TYPES)[keyof typeof TYPES]): number
  /** Breaks all current connections. */
  cut(): void
  close(): Promise<void>
}

export async function openLine(brokerPort: number): Promise<BrokerLine> {
  const sent: WirePacket[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const onward = connect(brokerPort, '127.0.0.1')
    socket.on(
      'data',
      packetReader((packet) => sent.push(packet)),
    )
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent,
    count: (type) => sent.filter((packet) => packet.type === type).length,
    cut,
    async close() {
      server.close()
      cut()
      await once(server, 'close')
    },
  }
}
