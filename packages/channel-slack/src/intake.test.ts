import type { ListenContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { SlackApi } from './api.ts'
import { slackSection } from './config.ts'
import { createCursors } from './cursors.ts'
import { Intake } from './intake.ts'

const config = v.parse(slackSection.schema, { bot_token: 'xoxb-1', app_token: 'xapp-1' })
const eventAt = (second: number) => ({
  event: { type: 'message', channel: 'C1', user: 'UADA', ts: `${1_767_225_600 + second}.000000`, text: 'x' },
})

describe('Intake', () => {
  test('leaves messages beyond 1,000 waiting ones to the catch-up', async () => {
    const host = testHost({ fetch: () => Promise.reject(new TypeError('fetch failed')) })
    const context: ListenContext = {
      signal: new AbortController().signal,
      lease: null,
      report: { connected() {}, event() {}, gap() {}, problem() {}, replace: async () => undefined },
      catchUp: () => new Promise(() => undefined),
      retrySoon() {},
    }
    const stored = Promise.withResolvers<void>()
    const cursors = createCursors(host.keyValue)
    const bot = { account: 'A0123', userId: 'UBOT', config }
    const intake = new Intake(host, new SlackApi(host, config), cursors, bot, () => stored.promise, context)
    const taken = Array.from({ length: 1000 }, (_, index) => intake.take('events_api', eventAt(index)))
    await expect(intake.take('events_api', eventAt(1000))).rejects.toMatchObject({ code: 'unavailable' })
    stored.resolve()
    await Promise.all(taken)
    // The catch-up has not succeeded, so the cursor stays before all of these messages.
    expect(cursors.entries()).toEqual([['C1', { after: '1767225599.999000' }]])
  })

  test('stores no message at the stop that waits for missed ones', async () => {
    const host = testHost({ fetch: () => Promise.reject(new TypeError('fetch failed')) })
    const stopping = new AbortController()
    const context: ListenContext = {
      signal: stopping.signal,
      lease: null,
      report: { connected() {}, event() {}, gap() {}, problem() {}, replace: async () => undefined },
      catchUp: () => new Promise((resolve) => stopping.signal.addEventListener('abort', () => resolve())),
      retrySoon() {},
    }
    const stored: unknown[] = []
    const bot = { account: 'A0123', userId: 'UBOT', config }
    const deliver = async (inbound: unknown) => void stored.push(inbound)
    const intake = new Intake(host, new SlackApi(host, config), createCursors(host.keyValue), bot, deliver, context)
    intake.startCatchUp()
    const taken = intake.take('events_api', eventAt(0))
    stopping.abort()
    await expect(taken).rejects.toMatchObject({ code: 'unavailable' })
    expect(stored).toEqual([])
  })
})
