import type { Channel } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { TELEGRAM_FORUM, TELEGRAM_GROUP } from './testing/fake.ts'
import { type Harness, startHarness } from './testing/harness.ts'

let harness: Harness
afterEach(() => harness.close())

const ADA = { to: '1001' }
const { signal } = new AbortController()
const show = (channel: Channel, text: string, to = ADA, clientId = 'draft-1') => channel.preview?.(to, { text, clientId }, signal)
const status = (code: number, body: object) => ({ fault: 'status' as const, status: code, body })
const refused = status(400, { ok: false, error_code: 400, description: 'Bad Request: method is not available' })

describe('a live draft', () => {
  test('shows a reply in a private chat without a message, and the next message removes it', async () => {
    harness = await startHarness()
    const { fake } = harness
    const { channel } = harness.channel()
    expect(await show(channel, '')).toBe(true)
    expect(fake.drafts).toMatchObject([{ chat: 1001, text: '' }])
    const [{ id = 0 } = {}] = fake.drafts
    expect(await show(channel, 'One')).toBe(true)
    expect(fake.drafts).toEqual([{ id, chat: 1001, thread: 0, text: 'One' }])
    expect(await show(channel, 'Two', ADA, 'draft-2')).toBe(true)
    expect(fake.drafts[0]?.id).not.toBe(id)
    expect(fake.messages()).toEqual([])
    await channel.send(ADA, { text: 'Two.', clientId: 'c' }, signal)
    expect(fake.drafts).toEqual([])
  })

  test('shows styles, and the text alone where the platform refuses them', async () => {
    harness = await startHarness()
    const { fake } = harness
    const { channel } = harness.channel()
    const message = { text: 'One', styles: [{ kind: 'bold' as const, from: 0, to: 3 }], clientId: 'c' }
    await channel.preview?.(ADA, message, signal)
    expect(fake.requests.at(-1)?.json).toMatchObject({ text: 'One', entities: [{ type: 'bold', offset: 0, length: 3 }] })
    fake.fail(status(400, { ok: false, error_code: 400, description: "Bad Request: can't parse entities" }))
    expect(await channel.preview?.(ADA, message, signal)).toBe(true)
    expect(fake.requests.at(-1)?.json).not.toHaveProperty('entities')
  })

  test('is not asked for in groups', async () => {
    harness = await startHarness()
    const { channel } = harness.channel()
    for (const to of [TELEGRAM_GROUP, TELEGRAM_FORUM]) expect(await show(channel, '', { to: String(to) })).toBe(false)
    expect(harness.callsOf('sendMessageDraft')).toBe(0)
  })

  test('is not asked for again for an hour at a server that does not know it', async () => {
    harness = await startHarness({ hasDrafts: false })
    const { channel, host } = harness.channel()
    for (let tries = 0; tries < 3; tries++) expect(await show(channel, '')).toBe(false)
    expect(harness.callsOf('sendMessageDraft')).toBe(1)
    await host.advance(3_600_000)
    expect(await show(channel, '')).toBe(false)
    expect(harness.callsOf('sendMessageDraft')).toBe(2)
  })

  test('that is refused in one chat is shown in others', async () => {
    harness = await startHarness()
    const { channel } = harness.channel()
    harness.fake.fail(refused)
    expect(await show(channel, '', { to: '1002' })).toBe(false)
    expect(await show(channel, '')).toBe(true)
    expect(await show(channel, '', { to: '1002' })).toBe(false)
    expect(harness.callsOf('sendMessageDraft')).toBe(2)
  })

  test('that is refused for its text is asked for again with the next one', async () => {
    harness = await startHarness()
    const { channel } = harness.channel()
    harness.fake.fail(refused)
    expect(await show(channel, 'One')).toBe(false)
    expect(await show(channel, '')).toBe(true)
    harness.fake.fail(refused)
    expect(await show(channel, '')).toBe(false)
    expect(await show(channel, '')).toBe(false)
  })

  test('reports rate limits and failures', async () => {
    harness = await startHarness()
    const { channel } = harness.channel()
    harness.fake.fail(status(429, { ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 3 } }))
    await expect(show(channel, 'One')).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 3 })
    harness.fake.block(1001)
    await expect(show(channel, '')).rejects.toMatchObject({ code: 'forbidden' })
    expect(harness.fake.drafts).toEqual([])
  })
})
