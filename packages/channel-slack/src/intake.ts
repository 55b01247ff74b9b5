/** What the connection brings, to the inbox: in order, acknowledged when durable, and caught up on where something is missing. */

import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type Inbound } from '@sluice/sdk'
import { catchUp } from './catch-up.ts'
import type { Cursors } from './cursors.ts'
import { parseMessage, type Reader } from './parse-message.ts'
import { parsePresses } from './parse-press.ts'
import { pauseMs } from './pause.ts'
import { placesOf } from './places.ts'
import type { SlackApi } from './slack-api.ts'
import { timestampBefore } from './timestamp.ts'

export interface Intake {
  /** Resolves once what stands in the envelope is durable. Throws `unavailable` if it could not be kept. */
  take(type: string, payload: Members): Promise<void>
  /** Something may be missing: it is looked for until it is there, or until the signal aborts. */
  mend(): void
}

export interface IntakeOptions {
  readonly host: Host
  readonly api: SlackApi
  readonly cursors: Cursors
  readonly reader: Reader
  readonly deliver: Deliver
  readonly signal: AbortSignal
}

/** How long what comes now waits for what came earlier; Slack wants its acknowledgement within 3 s. */
const TURN_MS = 1500
/** Beyond it messages are left for later. */
const UNDER_WAY_MAX = 1000

export function createIntake({ host, api, cursors, reader, deliver, signal }: IntakeOptions): Intake {
  const { clock, log } = host
  let turn: Promise<unknown> = Promise.resolve()
  /** Ends with the message that came last, each after those before it. */
  let kept: Promise<unknown> = Promise.resolve()
  let underWay = 0
  let isMending = false
  let isMissing = false

  const mend = (): void => {
    cursors.hold()
    isMissing = true
    if (!isMending) turn = Promise.race([untilMended(), clock.sleep(TURN_MS, signal)])
  }
  const untilMended = async (): Promise<void> => {
    isMending = true
    for (let failures = 0; isMissing && !signal.aborted; failures++) {
      isMissing = false
      try {
        await catchUp({ host, api, cursors, reader, deliver }, signal)
      } catch (error) {
        if (signal.aborted) break
        isMissing = true
        log.warn('what was written while there was no connection could not be read; trying again', { error })
        await clock.sleep(pauseMs(failures, error), signal)
      }
    }
    isMending = false
    if (!signal.aborted) cursors.release()
  }

  const takeMessage = async (event: Members): Promise<void> => {
    const message = parseMessage(event, reader)
    if (!message) return
    const ts = text(event.ts)
    cursors.know({ channel: message.to.to }, timestampBefore(ts))
    if (underWay > UNDER_WAY_MAX) {
      mend()
      throw new AppError('unavailable', `More than ${UNDER_WAY_MAX} messages of slack are on their way to the inbox`)
    }
    await turn
    const durable = deliver(message)
    kept = Promise.allSettled([durable, kept]).then(([{ status }]) => {
      if (status === 'rejected') return mend()
      for (const place of placesOf(event, message)) cursors.move(place, ts)
    })
    await durable
  }
  const takeAll = async (messages: readonly Inbound[]): Promise<void> => {
    await Promise.all(messages.map(deliver))
  }

  return {
    mend,
    async take(type, payload) {
      underWay += 1
      try {
        if (type === 'events_api') await takeMessage(members(payload.event))
        else if (type === 'interactive') await takeAll(parsePresses(payload, reader))
      } catch (error) {
        log.warn('a message could not be kept; slack is to bring it again', { error })
        throw error
      } finally {
        underWay -= 1
      }
    },
  }
}
