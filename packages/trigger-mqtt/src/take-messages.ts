/**
 * The messages of one connection, one after the other: each is acknowledged once what it starts is kept, and forgotten once
 * the broker is known to have seen that.
 */

import { signalScope } from '@sluice/kit'
import { errorText, type Logger } from '@sluice/sdk'
import type { IPublishPacket, MqttClient } from 'mqtt'
import type { EventKeys } from './event-keys.ts'
import type { Receive } from './receive.ts'
import { UnprovedAcks } from './unproved-acks.ts'

export interface MessageParts {
  readonly log: Logger
  readonly keys: Pick<EventKeys, 'forget'>
  readonly receive: Receive
  /** The broker has begun anew: no subscription and no packet id of before counts. No message is received before it resolves. */
  onNewSession(): Promise<void>
}

export interface ConnectionFate {
  /** Nothing can be acknowledged any more. */
  readonly gone: AbortSignal
  /** Nothing further is received; what is at hand may still be acknowledged. */
  readonly leaving: AbortSignal
  /** Ends the connection. */
  fail(error: unknown): void
}

export interface Taken {
  /** Resolves when what the broker has forgotten is forgotten here, too; meaningless before it has let us in. */
  begun(): Promise<void>
  /** Resolves when no message is at hand. */
  settled(): Promise<void>
}

export function takeMessages(client: MqttClient, parts: MessageParts, { gone, leaving, fail }: ConnectionFate): Taken {
  const { log, keys, receive } = parts
  const isOver = () => gone.aborted || leaving.aborted
  const acks = new UnprovedAcks()
  let session = Promise.resolve()
  let atHand: Promise<void> | undefined

  const askForProof = (): void => {
    if (acks.shouldPing && !isOver()) client.sendPing()
  }
  const take = async (packet: IPublishPacket, acknowledge: () => void): Promise<void> => {
    const { topic, payload, messageId: packetId } = packet
    await session
    if (isOver()) return
    using stop = signalScope([gone, leaving])
    const received = await receive(
      { topic, payload: Buffer.from(payload), packetId, isRepeat: packet.dup, isRetained: packet.retain },
      stop.signal,
    )
    if (received === 'kept' || gone.aborted) return
    acknowledge()
    if (received === 'ignored' || packetId === undefined) return
    acks.acknowledged(packetId)
    askForProof()
  }

  client.handleMessage = (packet, done) => {
    atHand = take(packet, done).finally(() => {
      atHand = undefined
    })
    atHand.catch(fail)
  }
  client.on('packetreceive', (packet) => {
    if (packet.cmd === 'connack' && packet.returnCode === 0 && !packet.sessionPresent) session = parts.onNewSession()
    if (packet.cmd !== 'pingresp') return
    keys.forget(acks.pingAnswered()).catch((error: unknown) => log.debug('keys of messages not forgotten', { reason: errorText(error) }))
    askForProof()
  })
  client.on('packetsend', ({ cmd }) => {
    if (cmd === 'pingreq') acks.pingSent()
  })

  const giveUp = client.onKeepaliveTimeout.bind(client)
  client.onKeepaliveTimeout = () => {
    if (!atHand) return giveUp()
    // The broker's answer waits behind the message at hand; it must not take our silence for our end either.
    client.sendPing()
    client.reschedulePing(true)
  }

  return { begun: () => session, settled: async () => atHand?.catch(() => undefined) }
}
