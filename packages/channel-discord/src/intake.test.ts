import { AppError, type Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import type { Message } from './catch-up.ts'
import { createCursors } from './cursors.ts'
import { Intake, type IntakeSource, WAITING_MAX } from './intake.ts'

/** An intake whose deliveries fail until `open` is called, and whose history holds every message that `say` was given. */
function openIntake({ isOpen = true }: { isOpen?: boolean } = {}) {
  const host = testHost()
  const cursors = createCursors(memoryKeyValue())
  const abort = new AbortController()
  const delivered: string[] = []
  const history: Message[] = []
  const failures: unknown[] = []
  let open = isOpen
  const source: IntakeSource = {
    async *missedIn(channel) {
      const failure = failures.shift()
      if (failure) throw failure
      const after = BigInt(cursors.get(channel)?.after ?? 0)
      for (const message of history) if (BigInt(message.id) > after) yield message
    },
    acknowledge: async () => undefined,
  }
  const deliver = async ({ id }: Inbound) => {
    if (!open) throw new AppError('unavailable', 'the disk is full')
    delivered.push(id)
  }
  const intake = new Intake(host, cursors, source, deliver, abort.signal)
  return {
    host,
    cursors,
    intake,
    delivered,
    failures,
    history,
    abort: () => abort.abort(),
    open: () => {
      open = true
    },
    /** A user writes a message, and the gateway delivers setup. */
    say(id: number, channel = '2') {
      const message = { id: String(id), inbound: inbound(String(id), channel) }
      history.push(message)
      intake.message({ channel, guild: '' }, message)
    },
    advance: async () => {
      await host.advance(60_000)
    },
  }
}

const inbound = (id: string, to: string): Inbound => ({ id, account: 'bot', sender: '4', to: { to }, text: id })

describe('Intake', () => {
  test('moves the cursor past stored messages only', async () => {
    const setup = openIntake({ isOpen: false })
    setup.say(11)
    setup.say(12)
    await setup.advance()
    expect(setup.cursors.get('2')?.after).toBe('10')
    setup.open()
    await setup.advance()
    expect(setup.delivered).toEqual(['11', '12'])
    expect(setup.cursors.get('2')?.after).toBe('12')
  })

  test('moves the cursor past an ignored message in order', async () => {
    const setup = openIntake({ isOpen: false })
    setup.say(11)
    setup.intake.message({ channel: '2', guild: '' }, { id: '12', inbound: undefined })
    await setup.advance()
    expect(setup.cursors.get('2')?.after).toBe('10')
    setup.open()
    await setup.advance()
    expect(setup.cursors.get('2')?.after).toBe('12')
    expect(setup.delivered).toEqual(['11'])
  })

  test(`fetches messages beyond ${WAITING_MAX} waiting ones later and loses none`, async () => {
    const setup = openIntake({ isOpen: false })
    const all = Array.from({ length: WAITING_MAX + 500 }, (_, index) => index + 11)
    for (const id of all) setup.say(id)
    await setup.advance()
    setup.open()
    await setup.advance()
    await setup.intake.settled()
    expect(setup.delivered).toEqual(all.map(String))
    expect(setup.host.logs.filter(({ message }) => message.startsWith('too many messages wait'))).toHaveLength(1)
  })

  test('passes over a message that can never be stored', async () => {
    const host = testHost()
    const delivered: string[] = []
    const deliver = async ({ id }: Inbound) => {
      if (id === '11') throw new TypeError('a bug')
      delivered.push(id)
    }
    const source: IntakeSource = { async *missedIn() {}, acknowledge: async () => undefined }
    const intake = new Intake(host, createCursors(memoryKeyValue()), source, deliver, new AbortController().signal)
    for (const id of ['11', '12']) intake.message({ channel: '2', guild: '' }, { id, inbound: inbound(id, '2') })
    await intake.settled()
    expect(delivered).toEqual(['12'])
    expect(host.logs).toMatchObject([{ level: 'error', message: 'message cannot be stored' }])
  })

  test('waits as long as the platform asks before it fetches a history again', async () => {
    const setup = openIntake()
    setup.cursors.follow('2', { after: '10' })
    setup.history.push({ id: '11', inbound: inbound('11', '2') })
    setup.failures.push(new AppError('rate_limited', 'discord answered 429', { retryAfterSecs: 40 }))
    setup.intake.catchUp()
    await setup.host.advance(39_000)
    expect(setup.delivered).toEqual([])
    await setup.host.advance(6000)
    expect(setup.delivered).toEqual(['11'])
  })

  test('queues one history per conversation, however often catchUp is called', async () => {
    const setup = openIntake({ isOpen: false })
    setup.cursors.follow('2', { after: '10' })
    setup.say(11)
    await setup.advance()
    for (let times = 0; times < 10; times++) setup.intake.catchUp()
    setup.open()
    await setup.advance()
    await setup.intake.settled()
    expect(setup.delivered).toEqual(['11'])
  })

  test('leaves unfinished messages to the next start when it is aborted', async () => {
    const setup = openIntake({ isOpen: false })
    setup.say(11)
    await setup.advance()
    setup.abort()
    await setup.intake.settled()
    expect(setup.delivered).toEqual([])
    expect(setup.cursors.get('2')?.after).toBe('10')
  })
})
