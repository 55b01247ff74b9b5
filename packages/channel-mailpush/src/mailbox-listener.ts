/** The loop around the mailbox: looks at it on each push, at start and now and then, one look at a time, until it is told to stop. */
import { type ChannelHealth, type Deliver, errorText, type Host, isAllowed } from '@sluice/sdk'
import { coversAddress, normaliseAddress } from './address.ts'
import { pauseMs } from './backoff.ts'
import { catchUp } from './catch-up.ts'
import type { MailpushConfig } from './config.ts'
import { type Cursor, keepCursor, readCursor } from './cursor.ts'
import { createHandOver } from './hand-over.ts'
import type { MailApi } from './mail-api.ts'
import type { Reader } from './read-mail.ts'
import { createWatch } from './watch.ts'

export interface MailboxListener {
  /** Resolves soon after `signal` aborts; failures are tried again with growing pauses. */
  listen(deliver: Deliver, signal: AbortSignal): Promise<void>
  /** Something happened in the mailbox; during a look at it, another follows. */
  wake(): void
  health(): Pick<ChannelHealth, 'state' | 'detail' | 'lastEventAtMs'>
}

/** A push may get lost, or never come where the subscription fails. */
const LOOK_MS = 300_000

export function createMailboxListener(host: Host, config: MailpushConfig, api: MailApi): MailboxListener {
  const { clock, keyValue, log } = host
  const subscription = { topic: config.topic, labels: config.label_filter }
  const allow = config.allowed_senders
  const readerOf = (mailbox: string): Reader => ({
    mailbox,
    mustBeProved: !allow.includes('*'),
    isAllowed: (address) => isAllowed(allow, address, normaliseAddress, coversAddress),
  })
  const watch = createWatch(clock, api, subscription)
  let woken = false
  let nap: AbortController | undefined
  let looked = false
  let problem: string | undefined
  let lastEventAtMs: number | undefined

  const counted =
    (deliver: Deliver): Deliver =>
    async (inbound) => {
      await deliver(inbound)
      lastEventAtMs = clock.nowMs()
    }

  /** Opens the mailbox; the result looks at it once. */
  const open = async (deliver: Deliver, signal: AbortSignal): Promise<() => Promise<void>> => {
    const mailbox = await api.address(signal)
    const keep = (cursor: Cursor) => keepCursor(keyValue, mailbox, cursor)
    const handOver = createHandOver({ host, api, reader: readerOf(mailbox), deliver: counted(deliver) })
    const start = async (): Promise<Cursor> => {
      const cursor = { atMs: clock.nowMs(), historyId: await watch.subscribe(signal) }
      await keep(cursor)
      return cursor
    }
    return async () => {
      const cursor = (await readCursor(keyValue, mailbox)) ?? (await start())
      await watch.renew(signal)
      await catchUp(cursor, { host, api, subscription, handOver, keep }, signal)
    }
  }

  const idle = async (signal: AbortSignal): Promise<void> => {
    if (woken) return
    nap = new AbortController()
    await clock.sleep(Math.min(LOOK_MS, watch.dueInMs()), AbortSignal.any([signal, nap.signal]))
    nap = undefined
  }

  return {
    async listen(deliver, signal) {
      let look: (() => Promise<void>) | undefined
      let failures = 0
      while (!signal.aborted) {
        woken = false
        try {
          look ??= await open(deliver, signal)
          await look()
          looked = true
          problem = undefined
          failures = 0
        } catch (error) {
          if (signal.aborted) return
          problem = errorText(error)
          log.warn('the mailbox could not be read; trying again', { error })
          await clock.sleep(pauseMs(failures++, error), signal)
          continue
        }
        await idle(signal)
      }
    },
    wake() {
      woken = true
      nap?.abort()
    },
    health() {
      const detail = problem ?? watch.problem()
      return {
        state: detail !== undefined ? 'down' : looked ? 'ok' : 'connecting',
        ...(detail !== undefined && { detail }),
        ...(lastEventAtMs !== undefined && { lastEventAtMs }),
      }
    },
  }
}
