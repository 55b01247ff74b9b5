import { AppError, type Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { createCursors } from './cursors.ts'
import type { Missed } from './history.ts'
import { createInflow, WAITING_MAX } from './inflow.ts'

/** An inflow whose deliveries fail until `open` is called, and whose history is what was said. */
function bench({ isOpen = true }: { isOpen?: boolean } = {}) {
  const host = testHost()
  const cursors = createCursors(memoryKeyValue())
  const abort = new AbortController()
  const delivered: string[] = []
  const said: Missed[] = []
  const failures: unknown[] = []
  let open = isOpen
  const inflow = createInflow({
    deliver: async ({ id }) => {
      if (!open) throw new AppError('unavailable', 'the disk is full')
      delivered.push(id)
    },
    cursors,
    clock: host.clock,
    log: host.log,
    signal: abort.signal,
    async *missedIn(channel) {
      const failure = failures.shift()
      if (failure) throw failure
      const after = BigInt(cursors.get(channel)?.after ?? 0)
      for (const message of said) if (BigInt(message.id) > after) yield message
    },
    seen: async () => undefined,
  })
  return {
    host,
    cursors,
    inflow,
    delivered,
    failures,
    said,
    abort: () => abort.abort(),
    open: () => {
      open = true
    },
    /** Somebody says it, and it comes. */
    say(id: number, channel = '2') {
      const message = { id: String(id), inbound: inbound(String(id), channel) }
      said.push(message)
      inflow.message({ channel, guild: '' }, message)
    },
    pass: async () => {
      await host.advance(60_000)
    },
  }
}

const inbound = (id: string, to: string): Inbound => ({ id, account: 'bot', sender: '4', to: { to }, text: id })

describe('inflow', () => {
  test('the cursor moves behind what is durable, and stays before what is not', async () => {
    const it = bench({ isOpen: false })
    it.say(11)
    it.say(12)
    await it.pass()
    expect(it.cursors.get('2')?.after).toBe('10')
    it.open()
    await it.pass()
    expect(it.delivered).toEqual(['11', '12'])
    expect(it.cursors.get('2')?.after).toBe('12')
  })

  test('a message that is none moves the cursor, in its turn', async () => {
    const it = bench({ isOpen: false })
    it.say(11)
    it.inflow.message({ channel: '2', guild: '' }, { id: '12', inbound: undefined })
    await it.pass()
    expect(it.cursors.get('2')?.after).toBe('10')
    it.open()
    await it.pass()
    expect(it.cursors.get('2')?.after).toBe('12')
    expect(it.delivered).toEqual(['11'])
  })

  test(`more than ${WAITING_MAX} do not wait: the rest is asked for when there is room, and none is lost`, async () => {
    const it = bench({ isOpen: false })
    const all = Array.from({ length: WAITING_MAX + 500 }, (_, index) => index + 11)
    for (const id of all) it.say(id)
    await it.pass()
    it.open()
    await it.pass()
    await it.inflow.settled()
    expect(it.delivered).toEqual(all.map(String))
    expect(it.host.logs.filter(({ message }) => message.startsWith('too many messages wait'))).toHaveLength(1)
  })

  test('a message that can never be kept blocks none behind it', async () => {
    const host = testHost()
    const delivered: string[] = []
    const inflow = createInflow({
      deliver: async ({ id }) => {
        if (id === '11') throw new TypeError('a bug')
        delivered.push(id)
      },
      cursors: createCursors(memoryKeyValue()),
      clock: host.clock,
      log: host.log,
      signal: new AbortController().signal,
      async *missedIn() {},
      seen: async () => undefined,
    })
    for (const id of ['11', '12']) inflow.message({ channel: '2', guild: '' }, { id, inbound: inbound(id, '2') })
    await inflow.settled()
    expect(delivered).toEqual(['12'])
    expect(host.logs).toMatchObject([{ level: 'error', message: 'a message cannot be taken in' }])
  })

  test('a history that says when to come back is not asked before', async () => {
    const it = bench()
    it.cursors.follow('2', { after: '10' })
    it.said.push({ id: '11', inbound: inbound('11', '2') })
    it.failures.push(new AppError('rate_limited', 'discord answered 429', { retryAfterSecs: 40 }))
    it.inflow.catchUp()
    await it.host.advance(39_000)
    expect(it.delivered).toEqual([])
    await it.host.advance(2000)
    expect(it.delivered).toEqual(['11'])
  })

  test('a conversation is owed one history, however often it is asked for', async () => {
    const it = bench({ isOpen: false })
    it.cursors.follow('2', { after: '10' })
    it.say(11)
    await it.pass()
    for (let times = 0; times < 10; times++) it.inflow.catchUp()
    it.open()
    await it.pass()
    await it.inflow.settled()
    expect(it.delivered).toEqual(['11'])
  })

  test('the end leaves the rest to the next start', async () => {
    const it = bench({ isOpen: false })
    it.say(11)
    await it.pass()
    it.abort()
    await it.inflow.settled()
    expect(it.delivered).toEqual([])
    expect(it.cursors.get('2')?.after).toBe('10')
  })
})
