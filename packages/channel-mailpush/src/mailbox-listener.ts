/** The loop around the mailbox: looks at it on each push, at start and now and then, one look at a time, until it is told to stop. */

import { signalScope } from '@sluice/kit'
import { type ChannelHealth, type Deliver, errorText, type Host, isAllowed } from '@sluice/sdk'
import { coversAddress, normaliseAddress } from './address.ts'
import { leastPauseMs, pauseMs } from './backoff.ts'
import { catchUp } from './catch-up.ts'
import type { MailpushConfig } from './config.ts'
import { type Cursor, keepBegin, keepCursor, readBegin, readCursor } from './cursor.ts'
import { createHandOver } from './hand-over.ts'
import type { MailApi } from './mail-api.ts'
import type { PushNotice } from './parse-push.ts'
import { createProgress, MARGIN_MS, type Progress } from './progress.ts'
import type { Reader } from './read-mail.ts'
import { createWatch } from './watch.ts'

export interface MailboxListener {
  /** Resolves soon after `signal` aborts; failures are tried again with growing pauses. */
  listen(deliver: Deliver, signal: AbortSignal): Promise<void>
  /**
   * Something happened in the mailbox; during a look at it, another follows. Resolves once a restart cannot lose it, and
   * rejects if it could not be kept.
   */
  pushed(notice: PushNotice, atMs: number): Promise<void>
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
  const watch = createWatch(host, api, subscription)
  /** True once the mailbox has a cursor: from then on a push says nothing that the next listing does not. */
  let hasCursor = false
  let keptPushes: Promise<void> = Promise.resolve()
  let woken = false
  let rest: AbortController | undefined
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
    const { address: mailbox } = await api.profile(signal)
    const keep = (cursor: Cursor) => keepCursor(keyValue, mailbox, cursor)
    const handOver = createHandOver({ host, api, reader: readerOf(mailbox), deliver: counted(deliver) })
    const start = async (): Promise<Cursor> => {
      const nowMs = clock.nowMs()
      const newest = await watch.now(signal)
      await keptPushes.catch(() => undefined)
      const begin = await readBegin(keyValue, mailbox)
      const cursor =
        begin && begin.historyId < newest
          ? { atMs: begin.atMs, setUpAtMs: begin.atMs - MARGIN_MS, historyId: begin.historyId, handedOver: [] }
          : { atMs: nowMs, setUpAtMs: nowMs, historyId: newest, handedOver: [] }
      await keep(cursor)
      return cursor
    }
    let progress: Progress | undefined
    return async () => {
      progress ??= createProgress((await readCursor(keyValue, mailbox)) ?? (await start()), keep)
      hasCursor = true
      await watch.renew(signal)
      await catchUp({ host, api, subscription, handOver, progress, now: watch.now }, signal)
    }
  }

  /** Until the next push, for `ms` at most. */
  const nap = async (ms: number, signal: AbortSignal): Promise<void> => {
    if (woken) return
    rest = new AbortController()
    using either = signalScope([signal, rest.signal])
    await clock.sleep(ms, either.signal)
    rest = undefined
  }
  const pause = async (failures: number, error: unknown, signal: AbortSignal): Promise<void> => {
    const ms = pauseMs(failures, error)
    const leastMs = Math.min(ms, leastPauseMs(error))
    await clock.sleep(leastMs, signal)
    await nap(ms - leastMs, signal)
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
          await pause(failures++, error, signal)
          continue
        }
        await nap(Math.min(LOOK_MS, watch.dueInMs()), signal)
      }
    },
    async pushed({ mailbox, historyId }, atMs) {
      if (!hasCursor) {
        const begin = { mailbox, historyId: historyId > 0n ? historyId - 1n : historyId, atMs }
        keptPushes = keptPushes.catch(() => undefined).then(() => keepBegin(keyValue, begin))
        await keptPushes
      }
      woken = true
      rest?.abort()
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
