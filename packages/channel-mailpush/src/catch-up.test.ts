import { AppError, type Deliver } from '@sluice/sdk'
import type { ProviderFault } from '@sluice/testkit/fake-provider'
import { afterEach, describe, expect, test } from 'vitest'
import { type Bench, START_MS, startBench } from './testing/bench.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const ada = (subject: string) => ({ from: 'Ada <ada@example.com>', subject, text: `about ${subject}` })
const subjects = (delivered: readonly { readonly text: string }[]) => delivered.map(({ text }) => /^Subject: (.*)/.exec(text)?.[1])

let bench: Bench
const start = async (...options: Parameters<typeof startBench>): Promise<Bench> => {
  bench = await startBench(...options)
  return bench
}
afterEach(() => bench.close())

/** Accepts every mail, but first rejects one attempt for each given subject. A subject may be given repeatedly. */
const refusing =
  (...refused: string[]): Deliver =>
  async ({ text }) => {
    const at = refused.findIndex((subject) => text.startsWith(`Subject: ${subject}\n`))
    if (at < 0) return
    refused.splice(at, 1)
    throw new AppError('unavailable', 'the disk is full')
  }

describe.each([{ numericIds: false }, { numericIds: true }])('new mails by watch and history, %j', ({ numericIds }) => {
  test('the first start subscribes and delivers new mails only', async () => {
    const { fake, run } = await start({ numericIds })
    fake.receive(ada('from before'))
    const one = run()
    await one.until(() => one.health().state === 'ok')
    expect(fake.watches).toEqual([{ topicName: 'projects/p/topics/t', labelIds: ['INBOX'], labelFilterBehavior: 'INCLUDE' }])
    const { id, threadId } = fake.receive(ada('hello'))
    await one.push()
    await one.until(() => one.delivered.length > 0)
    expect(one.delivered).toEqual([
      {
        id,
        account: 'bot@example.com',
        sender: 'ada@example.com',
        name: 'Ada',
        to: {
          to: 'ada@example.com',
          thread: threadId,
          replyTo: `<${id}@mail.example.net>`,
          more: { subject: 'hello', from: 'bot@example.com', references: `<${id}@mail.example.net>` },
        },
        text: 'Subject: hello\n\nabout hello',
        typed: 'about hello',
        addressed: 'direct',
        sentAtMs: START_MS,
      },
    ])
    expect(one.health()).toEqual({ state: 'ok', lastEventAtMs: START_MS })
  })

  test('mails pushed before the first subscription succeeds are delivered', async () => {
    const { fake, run } = await start({ numericIds })
    fake.fail({ fault: 'status', status: 500 }, { times: 3, matches: ({ path }) => path.endsWith('/watch') })
    fake.fail({ fault: 'status', status: 500 }, { times: 3, matches: ({ path }) => path.endsWith('/profile') })
    fake.receive(ada('from before'))
    const one = run()
    fake.receive(ada('1'))
    await one.push()
    fake.receive(ada('2'))
    await one.push()
    await one.until(() => one.health().state === 'ok', 500)
    expect(subjects(one.delivered)).toEqual(['1', '2'])
  })

  test('a mail pushed before the first subscription survives a crash', async () => {
    const { fake, run, channel } = await start({ numericIds })
    fake.receive(ada('from before'))
    fake.receive(ada('1'))
    const push = { headers: {}, url: new URL('http://localhost/'), body: new TextEncoder().encode(fake.push()), receivedAtMs: START_MS }
    expect(await channel().channel.webhook?.parse(push)).toEqual([])
    fake.receive(ada('2'))
    const two = run({ laterMs: DAY_MS })
    await two.until(() => two.health().state === 'ok')
    expect(subjects(two.delivered)).toEqual(['1', '2'])
  })

  test('mails that arrive while stopped are delivered once at the next start', async () => {
    const { fake, run } = await start({ numericIds, pageSize: 2 })
    const one = run()
    await one.until(() => one.health().state === 'ok')
    fake.receive(ada('1'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
    await one.until(() => one.host.clock.sleeping > 0)
    await one.stop()
    for (const subject of ['2', '3', '4', '5', '6']) fake.receive(ada(subject))
    const two = run({ laterMs: DAY_MS })
    await two.until(() => two.health().state === 'ok')
    expect(subjects(two.delivered)).toEqual(['2', '3', '4', '5', '6'])
    await two.stop()
    const three = run({ laterMs: DAY_MS })
    await three.until(() => three.health().state === 'ok')
    expect(three.delivered).toEqual([])
  })
})

describe('the cursor moves only past durable mails', () => {
  test('a rejected mail and the mails after it are delivered again in order', async () => {
    const { fake, run, keyValue } = await start()
    const one = run({ deliver: refusing('2', '2') })
    await one.until(() => one.health().state === 'ok')
    const { historyId } = (await keyValue.get('cursor/bot@example.com')) as { readonly historyId: string }
    for (const subject of ['1', '2', '3']) fake.receive(ada(subject))
    await one.push()
    await one.until(() => one.delivered.length === 2)
    await one.until(() => one.health().state !== 'ok')
    expect(await keyValue.get('cursor/bot@example.com')).toMatchObject({ historyId })
    await one.until(() => one.health().state === 'ok', 500)
    expect(subjects(one.delivered)).toEqual(['1', '2', '2', '2', '3'])
    expect(await keyValue.get('cursor/bot@example.com')).not.toMatchObject({ historyId })
  })

  test('a rejected mail is delivered after a restart', async () => {
    const { fake, run } = await start()
    const one = run({ deliver: refusing('2') })
    await one.until(() => one.health().state === 'ok')
    for (const subject of ['1', '2', '3']) fake.receive(ada(subject))
    await one.push()
    await one.until(() => one.health().state !== 'ok')
    await one.stop()
    const two = run()
    await two.until(() => two.health().state === 'ok')
    expect(subjects(two.delivered)).toEqual(['2', '3'])
  })

  test('delivered pages are not read again', async () => {
    const { fake, run } = await start({ pageSize: 2 })
    const one = run({ deliver: refusing('4') })
    await one.until(() => one.health().state === 'ok')
    for (const subject of ['1', '2', '3', '4', '5']) fake.receive(ada(subject))
    await one.push()
    await one.until(() => one.delivered.length === 4)
    await one.until(() => one.health().state === 'ok', 500)
    expect(subjects(one.delivered)).toEqual(['1', '2', '3', '4', '4', '5'])
  })

  test('a mail that arrives while pages are read is delivered', async () => {
    const { fake, run } = await start({ pageSize: 1 })
    let came = false
    const one = run({
      async deliver() {
        if (!came) fake.receive(ada('meanwhile'))
        came = true
      },
    })
    await one.until(() => one.health().state === 'ok')
    for (const subject of ['1', '2']) fake.receive(ada(subject))
    await one.push()
    await one.until(() => one.delivered.length >= 3, 1000)
    expect(new Set(subjects(one.delivered))).toEqual(new Set(['1', '2', 'meanwhile']))
  })
})

describe('an expired history', () => {
  test('reports mails that are too old to be listed', async () => {
    const { fake, run } = await start()
    const first = run()
    await first.until(() => first.health().state === 'ok')
    await first.stop()
    fake.receive(ada('too old'))
    fake.mailbox.forget()
    const late = run({ laterMs: 31 * DAY_MS })
    await late.until(() => late.health().state === 'ok')
    expect(late.delivered).toEqual([])
    expect(late.gaps).toEqual([{ sinceMs: START_MS, why: expect.stringContaining('30 days') }])
    expect(first.gaps).toEqual([])
  })

  test('is replaced by a listing of all mails since the cursor', async () => {
    const { fake, run } = await start({ pageSize: 2 })
    const one = run()
    await one.until(() => one.health().state === 'ok')
    fake.receive(ada('known'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
    await one.until(() => one.host.clock.sleeping > 0)
    await one.stop()
    for (const day of [1, 3, 5, 9]) fake.receive({ ...ada(`day ${day}`), atMs: START_MS + day * DAY_MS })
    fake.receive({ ...ada('sent'), labels: ['SENT'], atMs: START_MS + DAY_MS })
    fake.mailbox.forget()
    const two = run({ laterMs: 10 * DAY_MS })
    await two.until(() => two.health().state === 'ok')
    expect(subjects(two.delivered)).toEqual(['day 1', 'day 3', 'day 5', 'day 9'])
    fake.receive(ada('after'))
    await two.push()
    await two.until(() => two.delivered.length === 5)
    expect(subjects(two.delivered).at(-1)).toBe('after')
  })

  test('does not lose a mail that arrives during the listing', async () => {
    const { fake, run } = await start()
    const one = run()
    await one.until(() => one.health().state === 'ok')
    await one.stop()
    fake.receive(ada('1'))
    fake.mailbox.forget()
    let came = false
    const two = run({
      async deliver() {
        if (!came) fake.receive(ada('meanwhile'))
        came = true
      },
    })
    await two.until(() => two.delivered.length >= 2, 1000)
    expect(subjects(two.delivered)).toEqual(['1', 'meanwhile'])
  })

  test('saves the new cursor only after all mails are delivered', async () => {
    const { fake, run } = await start()
    const one = run()
    await one.until(() => one.health().state === 'ok')
    await one.stop()
    for (const subject of ['1', '2']) fake.receive(ada(subject))
    fake.mailbox.forget()
    const two = run({ deliver: refusing('2') })
    await two.until(() => two.health().state === 'down')
    await two.stop()
    const three = run()
    await three.until(() => three.health().state === 'ok')
    expect(subjects(three.delivered)).toEqual(['2'])
  })

  test('does not repeat mails from around the cursor that were changed later', async () => {
    const { fake, run } = await start({ pageSize: 2 })
    const one = run()
    await one.until(() => one.health().state === 'ok')
    const mails = ['1', '2', '3'].map((subject) => fake.receive(ada(subject)))
    await one.push()
    await one.until(() => one.delivered.length === 3)
    await one.until(() => one.host.clock.sleeping > 0)
    await one.stop()
    for (const { id } of mails) fake.mailbox.touch(id)
    fake.mailbox.forget()
    const two = run({ laterMs: 8 * DAY_MS })
    fake.receive(ada('4'))
    await two.until(() => two.health().state === 'ok')
    expect(subjects(two.delivered)).toEqual(['4'])
  })

  test('does not repeat mails that were delivered before a failure', async () => {
    const { fake, run } = await start({ pageSize: 2 })
    const one = run({ deliver: refusing('4', '4', '4') })
    await one.until(() => one.health().state === 'ok')
    await one.host.advance(HOUR_MS / 12)
    const mails = ['1', '2', '3', '4', '5'].map((subject) => fake.receive(ada(subject)))
    await one.until(() => one.delivered.length === 4, 60_000)
    await one.until(() => one.health().state === 'down' && one.host.clock.sleeping > 0)
    await one.stop()
    for (const { id } of mails) fake.mailbox.touch(id)
    fake.mailbox.forget()
    const two = run({ laterMs: 8 * DAY_MS, deliver: refusing('5') })
    await two.until(() => two.health().state === 'down')
    await two.stop()
    const three = run({ laterMs: 8 * DAY_MS })
    await three.until(() => three.health().state === 'ok')
    expect(subjects(two.delivered)).toEqual(['4', '5'])
    expect(subjects(three.delivered)).toEqual(['5'])
  })

  test('never delivers mails from before the first start', async () => {
    const { fake, run } = await start()
    const before = fake.receive({ ...ada('from before'), atMs: START_MS + 499 })
    const one = run({ laterMs: 500 })
    await one.until(() => one.health().state === 'ok')
    await one.stop()
    fake.receive(ada('1'))
    fake.mailbox.touch(before.id)
    fake.mailbox.forget()
    const two = run({ laterMs: HOUR_MS })
    await two.until(() => two.health().state === 'ok')
    expect(subjects(two.delivered)).toEqual(['1'])
    fake.mailbox.touch(before.id)
    fake.mailbox.forget()
    const three = run({ laterMs: HOUR_MS })
    await three.until(() => three.health().state === 'ok')
    expect(three.delivered).toEqual([])
  })

  test('lists every label', async () => {
    const { fake, run } = await start()
    const config = { label_filter: ['INBOX', 'Label_7'] }
    const one = run({ config })
    await one.until(() => one.health().state === 'ok')
    await one.stop()
    for (const label of ['INBOX', 'Label_7', 'Label_8']) fake.receive({ ...ada(label), labels: [label] })
    fake.mailbox.forget()
    const two = run({ config })
    await two.until(() => two.health().state === 'ok')
    expect(subjects(two.delivered).toSorted()).toEqual(['INBOX', 'Label_7'])
  })
})

describe('labels', () => {
  test.each<[labels: string[], seen: string[]]>([
    [['INBOX'], ['INBOX']],
    [['Label_7'], ['Label_7']],
    [
      ['INBOX', 'Label_7'],
      ['INBOX', 'Label_7'],
    ],
    [[], ['INBOX', 'Label_7', 'Label_8']],
  ])('mails with one of %j are delivered', async (labels, seen) => {
    const { fake, run } = await start()
    const one = run({ config: { label_filter: labels } })
    await one.until(() => one.health().state === 'ok')
    for (const label of ['INBOX', 'Label_7', 'Label_8']) fake.receive({ ...ada(label), labels: [label] })
    await one.push()
    await one.until(() => one.delivered.length >= seen.length && one.host.clock.sleeping > 0)
    expect(subjects(one.delivered)).toEqual(seen)
    expect(fake.watches[0]).toEqual(
      labels.length > 0
        ? { topicName: 'projects/p/topics/t', labelIds: labels, labelFilterBehavior: 'INCLUDE' }
        : { topicName: 'projects/p/topics/t' },
    )
  })
})

describe('a single mail never blocks the mailbox', () => {
  test('when it is deleted, unreadable or our own', async () => {
    const { fake, run, channel } = await start()
    const one = run({ config: { label_filter: [] } })
    await one.until(() => one.health().state === 'ok')
    fake.mailbox.remove(fake.receive(ada('gone')).id)
    fake.receive({ ...ada('odd'), payload: { headers: 'none' } })
    fake.receive({ ...ada('list'), headers: [['List-Id', '<x>']] })
    const { channel: sender } = channel()
    await sender.send({ to: 'ada@example.com' }, { text: 'hi', clientId: 'c1' }, new AbortController().signal)
    fake.receive(ada('good'))
    await one.push()
    await one.until(() => one.delivered.length === 1)
    expect(subjects(one.delivered)).toEqual(['good'])
  })

  test('when it is nested 100,000 parts deep', async () => {
    const { fake, run } = await start()
    const one = run()
    await one.until(() => one.health().state === 'ok')
    const { id, payload, ...mail } = fake.receive({ ...ada('deep'), text: 'its first words' })
    // JSON.stringify cannot write an object of this depth.
    const parts = `${'[{"parts":'.repeat(100_000)}[]${'}]'.repeat(100_000)}`
    const { headers } = payload as { readonly headers: object }
    const body = JSON.stringify({ id, ...mail, payload: { mimeType: 'multipart/mixed', headers, parts: '…' } }).replace('"…"', parts)
    fake.fail({ fault: 'status', status: 200, body }, { matches: ({ path }) => path.endsWith(id) })
    fake.receive(ada('next'))
    await one.push()
    await one.until(() => one.delivered.length === 2)
    expect(one.delivered.map(({ text }) => text)).toEqual(['Subject: deep\n\nits first words', 'Subject: next\n\nabout next'])
  })

  test('when it is too large, and delivers its snippet', async () => {
    const { fake, run } = await start()
    const one = run()
    await one.until(() => one.health().state === 'ok')
    fake.receive({ ...ada('large'), text: `It begins so. ${'x'.repeat(13_000_000)}` })
    await one.push()
    await one.until(() => one.delivered.length === 1)
    expect(one.delivered[0]?.text).toMatch(/^Subject: large\n\nIt begins so\. x+$/)
  })

  test.each<[what: string, status: number]>([
    ['400', 400],
    ['410', 410],
    ['413', 413],
  ])('when the API answers %s for an hour: it is skipped and logged', async (_, status) => {
    const { fake, run } = await start()
    const one = run()
    await one.until(() => one.health().state === 'ok')
    const { id } = fake.receive(ada('never'))
    fake.receive(ada('next'))
    fake.fail({ fault: 'status', status }, { times: 1000, matches: ({ path }) => path.endsWith(id) })
    await one.push()
    await one.until(() => one.delivered.length === 1, 60_000)
    expect(subjects(one.delivered)).toEqual(['next'])
    const passedMs = one.host.clock.monotonicMs()
    expect(passedMs).toBeGreaterThanOrEqual(HOUR_MS)
    expect(passedMs).toBeLessThan(2 * HOUR_MS)
    expect(one.host.logs).toContainEqual(expect.objectContaining({ level: 'error', fields: expect.objectContaining({ mail: id }) }))
  })

  test('and pushes do not make a refused mail be skipped sooner', async () => {
    const { fake, run, requestCount } = await start()
    const one = run()
    await one.until(() => one.health().state === 'ok')
    const { id } = fake.receive(ada('later'))
    fake.fail({ fault: 'status', status: 400 }, { times: 40, matches: ({ path }) => path.endsWith(id) })
    while (requestCount(`GET /messages/${id}`) < 40) {
      await one.push()
      await one.until(() => one.host.clock.sleeping > 0)
      await one.host.advance(1000)
    }
    await one.until(() => one.delivered.length === 1, 1000)
  })

  test.each<[what: string, fault: ProviderFault]>([
    ['500', { fault: 'status', status: 500 }],
    ['503', { fault: 'status', status: 503 }],
    ['429', { fault: 'status', status: 429 }],
    ['401', { fault: 'status', status: 401 }],
    ['403', { fault: 'status', status: 403 }],
    ['408', { fault: 'status', status: 408 }],
    ['a redirect', { fault: 'status', status: 302, headers: { location: 'http://127.0.0.1:9/' } }],
    ['a broken connection', { fault: 'reset' }],
    ['a garbled answer', { fault: 'garbage' }],
  ])('but waits for a mail as long as the API fails with %s', async (_, fault) => {
    const { fake, run } = await start()
    const one = run()
    await one.until(() => one.health().state === 'ok')
    const { id } = fake.receive(ada('1'))
    fake.receive(ada('2'))
    fake.fail(fault, { times: 40, matches: ({ path }) => path.endsWith(id) })
    await one.push()
    await one.until(() => one.delivered.length === 2, 300_000)
    expect(subjects(one.delivered)).toEqual(['1', '2'])
    expect(one.host.clock.monotonicMs()).toBeGreaterThan(HOUR_MS)
  })
})
