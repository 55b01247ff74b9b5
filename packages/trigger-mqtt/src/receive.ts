/** What becomes of a message: refused, or fired as an event until the engine has kept what it starts. */
import { AppError, type Host, type Sops } from '@sluice/sdk'
import type { Delivery, EventKeys } from './event-keys.ts'
import { pauseMs } from './pause.ts'

export interface Message extends Delivery {
  /** The topic's last value, sent because we subscribed. */
  readonly isRetained: boolean
}

const PAYLOAD_BYTES_MAX = 64 * 1024

/** `ignored` and `settled` may be acknowledged, nothing is remembered of the first; `kept`: the broker has to deliver it again. */
export type Received = 'ignored' | 'settled' | 'kept'

/** Never rejects. With a message that cannot be fired now it ends when `signal` aborts. */
export type Receive = (message: Message, signal: AbortSignal) => Promise<Received>

export function createReceive({ clock, log }: Pick<Host, 'clock' | 'log'>, sops: Pick<Sops, 'matches' | 'fire'>, keys: EventKeys): Receive {
  const isWanted = ({ topic, payload, isRetained }: Message): boolean => {
    if (isRetained) log.debug('a retained message is no event', { topic })
    else if (!sops.matches('mqtt', topic)) log.debug('no procedure has a trigger for the message', { topic })
    else if (payload.length > PAYLOAD_BYTES_MAX)
      log.warn('a message was refused: it is too large', { topic, bytes: payload.length, bytesMax: PAYLOAD_BYTES_MAX })
    else return true
    return false
  }

  return async (message, signal) => {
    if (!isWanted(message)) return 'ignored'
    const { topic } = message
    const payload = Buffer.from(message.payload).toString('utf8')
    const atMs = clock.nowMs()
    let key: string | undefined
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        key ??= await keys.keyOf(message)
        if (signal.aborted) break
        await sops.fire({ source: 'mqtt', topic, payload, atMs, by: 'broker', key })
        return 'settled'
      } catch (error) {
        if (error instanceof AppError && error.status < 500) {
          log.error('a message was dropped: it is refused', { topic, error })
          return 'settled'
        }
        log.warn('a message waits: what it starts could not be kept', { topic, failures, error })
        await clock.sleep(pauseMs(failures), signal)
      }
    }
    return 'kept'
  }
}
