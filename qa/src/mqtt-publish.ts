/** Publishes one message to an MQTT 3.1.1 broker on loopback that needs no password. */
import { once } from 'node:events'
import { connect } from 'node:net'

const CONNECT = 0x10
const CONNACK = [0x20, 2, 0, 0]
const PUBLISH_QOS_1 = 0x32
const PUBACK = [0x40, 2, 0, 1]
const CLEAN_SESSION = 2
const ANSWER_MS_MAX = 30_000

/** Resolves when the broker has acknowledged the message. */
export async function mqttPublish(port: number, topic: string, payload: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.setTimeout(ANSWER_MS_MAX, () => socket.destroy(new Error('the broker did not answer in time')))
  try {
    socket.write(packet(CONNECT, [text('MQTT'), Buffer.from([4, CLEAN_SESSION, 0, 60]), text(`publisher-${process.pid}-${Date.now()}`)]))
    socket.write(packet(PUBLISH_QOS_1, [text(topic), Buffer.from([0, 1]), Buffer.from(payload)]))
    let answer = Buffer.alloc(0)
    while (answer.length < CONNACK.length + PUBACK.length) answer = Buffer.concat([answer, ...(await once(socket, 'data'))])
    if (!answer.equals(Buffer.from([...CONNACK, ...PUBACK])))
      throw new Error(`the broker sent an unexpected answer: ${answer.toString('hex')}`)
  } finally {
    socket.destroy()
  }
}

const text = (value: string): Buffer =>
  Buffer.concat([Buffer.from([Buffer.byteLength(value) >> 8, Buffer.byteLength(value) & 255]), Buffer.from(value)])

function packet(head: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  if (body.length > 16_383) throw new Error('the packet is too long for a length of two bytes')
  const length = body.length < 128 ? [body.length] : [(body.length & 127) | 128, body.length >> 7]
  return Buffer.concat([Buffer.from([head, ...length]), body])
}
