/** The life of calls at the three providers: instructions, limits, replies and restarts. */
import { type Channel, type Inbound, isAllowed, type Parts } from '@sluice/sdk'
import { rawRequest } from '@sluice/sdk/webhook'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { voiceCallSection } from './config.ts'
import feature from './index.ts'
import { plivoSignature } from './plivo.ts'
import { telnyxState } from './telnyx.ts'
import {
  AUTH_TOKEN,
  BASE_URL,
  formSectionOf,
  OUR_NUMBER,
  sectionOf,
  startVoiceFake,
  telnyxHeaders,
  type VoiceFake,
} from './testing/index.ts'
import { twilioSignature } from './twilio.ts'

const CALLER = '+15550004444'
type Values = Readonly<Record<string, unknown>>

let fake: VoiceFake
beforeEach(async () => {
  fake = await startVoiceFake()
})
afterEach(() => fake.close())

interface Line {
  readonly host: TestHost
  readonly parts: Parts
  readonly channel: Channel
  /** Sends a request as the provider does; returns the messages in it and the text of the channel's answer. */
  post(event: Values, step?: Readonly<Record<string, string>>): Promise<{ messages: readonly Inbound[]; answer: string }>
  tool(input: Values): Promise<string>
}

async function line(provider: 'twilio' | 'plivo' | 'telnyx', change: Values = {}, overrides: TestHostOverrides = {}): Promise<Line> {
  const host = testHost({ fetch, ...overrides })
  const section = provider === 'telnyx' ? sectionOf(fake) : formSectionOf(provider, fake)
  const parts = feature.build(host, v.parse(voiceCallSection.schema, { ...section, ...change }))
  await parts.register?.(new AbortController().signal)
  const [channel] = parts.channels ?? []
  if (!channel?.webhook) throw new Error('the channel has no webhook')
  const { webhook } = channel
  return {
    host,
    parts,
    channel,
    async post(event, step = {}) {
      const query = new URLSearchParams(step).toString()
      const path = `/voice/inbound${query && `?${query}`}`
      const form = new URLSearchParams(event as Record<string, string>)
      const body = provider === 'telnyx' ? JSON.stringify({ data: { id: 'ev', ...event } }) : form.toString()
      const signatures = {
        twilio: () => ({ 'x-twilio-signature': twilioSignature(AUTH_TOKEN, BASE_URL + path, form) }),
        plivo: () => ({
          'x-plivo-signature-v3': plivoSignature(AUTH_TOKEN, BASE_URL + path, form, '1'),
          'x-plivo-signature-v3-nonce': '1',
        }),
        telnyx: () => telnyxHeaders(body, host.clock.nowMs()),
      }
      const headers = signatures[provider]()
      const url = `http://127.0.0.1:42617${path}`
      const raw = rawRequest({ headers, url, body: new TextEncoder().encode(body), receivedAtMs: host.clock.nowMs() })
      await webhook.verify(raw)
      const messages = await webhook.parse(raw)
      return { messages, answer: (await (await webhook.answer?.(raw))?.text()) ?? '' }
    },
    async tool(input) {
      const [tool] = parts.tools ?? []
      if (!tool) throw new Error('there is no tool')
      const context = { ...host.by, signal: new AbortController().signal } as never
      await tool.precheck?.(input, context)
      return tool.run(input, context)
    },
  }
}

const say = ({ channel }: Line, text: string, call: string, clientId = 'reply-1') =>
  channel.send({ to: CALLER, more: { call } }, { text, clientId }, new AbortController().signal)

describe.each([
  ['twilio', { CallSid: 'CA01' }, 'SpeechResult', /<Gather [^>]*input="speech"[^>]*><Say language="en-US">(.*)<\/Say><\/Gather><Redirect/],
  [
    'plivo',
    { CallUUID: 'CA01' },
    'Speech',
    /<GetInput [^>]*inputType="speech"[^>]*><Speak language="en-US">(.*)<\/Speak><\/GetInput><Redirect/,
  ],
] as const)('a call at %s', (provider, id, speech, talks) => {
  const about = { ...id, From: CALLER, To: OUR_NUMBER, Direction: 'inbound', CallStatus: 'in-progress' }

  test('greets, waits for the reply to the words of the caller, and speaks it', async () => {
    const call = await line(provider)
    const greeting = (await call.post({ ...about, CallStatus: 'ringing' })).answer
    expect(talks.exec(greeting)?.[1]).toBe('Hello. How can I help you?')
    const heardAt = new URL(/action="([^"]+)"/.exec(greeting)?.[1]?.replaceAll('&amp;', '&') ?? '')
    const heard = await call.post({ ...about, [speech]: ' Turn on the light. ' }, Object.fromEntries(heardAt.searchParams))
    expect(heard.messages).toMatchObject([
      { account: OUR_NUMBER, sender: CALLER, text: 'Turn on the light.', to: { to: CALLER, more: { call: 'CA01' } } },
    ])
    expect(heard.answer).toMatch(/<(Pause|Wait) length="60"\/><Redirect method="POST">/)

    await say(call, 'It is <on> & bright.', 'CA01')
    const [command] = fake.commands
    const fetched = new URL(String(command?.values.Url ?? command?.values.aleg_url))
    expect(fetched.origin + fetched.pathname).toBe(`${BASE_URL}/voice/inbound`)
    const spoken = (await call.post(about, Object.fromEntries(fetched.searchParams))).answer
    expect(talks.exec(spoken)?.[1]).toBe('It is &lt;on&gt; &amp; bright.')
    // The provider may fetch the text again.
    expect((await call.post(about, Object.fromEntries(fetched.searchParams))).answer).toContain('bright')
  })

  test('a repeat of the words has the same id, and the next words have another', async () => {
    const call = await line(provider)
    const ids = []
    for (const n of ['a', 'a', 'b']) ids.push((await call.post({ ...about, [speech]: 'Yes.' }, { step: 'heard', n })).messages[0]?.id)
    expect(ids).toEqual(['CA01/a', 'CA01/a', 'CA01/b'])
  })

  test('a silent caller is asked twice, then the call ends', async () => {
    const call = await line(provider)
    await call.post(about)
    expect((await call.post(about, { step: 'silent', times: '1' })).answer).toContain('Are you still there?')
    const last = (await call.post(about, { step: 'silent', times: '3' })).answer
    expect(last).toContain('Goodbye.')
    expect(last).toContain('<Hangup/>')
  })

  test('a caller who is not allowed is refused, and reaches no turn', async () => {
    const call = await line(provider, { allowed_numbers: ['+15559999999'] })
    expect((await call.post(about)).answer).toMatch(/<(Reject|Hangup) reason="rejected"\/>/)
    expect((await call.post({ ...about, [speech]: 'Hello?' }, { step: 'heard', n: '1' })).answer).toContain('<Hangup/>')
  })

  test.each(['sip:+15550004444@elsewhere.example', 'client:15550004444', 'anonymous'])(
    'the digits in %s are no allowed number',
    async (From) => {
      const call = await line(provider, { allowed_numbers: [CALLER] })
      expect((await call.post({ ...about, From })).answer).toMatch(/<(Reject|Hangup) reason="rejected"\/>/)
      const { messages } = await call.post({ ...about, From, [speech]: 'Open the door.' }, { step: 'heard', n: '1' })
      const allowed = messages.filter(({ sender }) => isAllowed(call.channel.allow, sender, call.channel.normalise))
      expect(allowed).toEqual([])
    },
  )

  test('a request of a call that has ended begins no call, also after a restart', async () => {
    const keyValue = memoryKeyValue()
    const call = await line(provider, { max_calls: 1 }, { keyValue })
    await call.post(about)
    await call.post({ ...about, CallStatus: 'completed' })
    expect((await call.post(about)).answer).toBe('')
    const again = await line(provider, { max_calls: 1 }, { keyValue })
    expect((await again.post(about)).answer).toBe('')
    expect((await again.post({ ...about, CallSid: 'CA02', CallUUID: 'CA02' })).answer).toContain('How can I help you?')
  })

  test('a call whose end is not reported does not keep the line busy', async () => {
    const call = await line(provider, { max_calls: 1 })
    await call.post(about)
    await call.host.advance(120_000)
    await call.post(about, { step: 'wait' })
    await call.host.advance(150_000)
    expect(fake.commands).toEqual([])
    await call.host.advance(40_000)
    await expect.poll(() => fake.commands.map(({ action }) => action)).toEqual(['hangup'])
    const second = { ...about, CallSid: 'CA02', CallUUID: 'CA02' }
    await expect.poll(async () => (await call.post(second)).answer).toContain('How can I help you?')
  })

  test('a call that goes on is ended when its number leaves the allowlist', async () => {
    const keyValue = memoryKeyValue()
    const before = await line(provider, { allowed_numbers: [CALLER] }, { keyValue })
    await before.post(about)
    await before.parts.close?.()
    const after = await line(provider, { allowed_numbers: ['+15559999999'] }, { keyValue })
    expect((await after.post(about, { step: 'wait' })).answer).toMatch(/<Hangup ?\/>/)
    await after.host.advance(2000)
    await expect.poll(() => fake.commands.map(({ action }) => action)).toEqual(['hangup'])
  })

  test('texts that were not fetched are forgotten after a day, without a restart', async () => {
    const keyValue = memoryKeyValue()
    const call = await line(provider, {}, { keyValue })
    await call.post(about)
    for (const clientId of ['a', 'b']) await say(call, 'Hello.', 'CA01', clientId)
    expect((await keyValue.list('say/', 10)).length).toBe(2)
    await call.host.advance(26 * 3_600_000)
    await expect.poll(async () => (await keyValue.list('say/', 10)).length).toBe(0)
  })

  test('a reply of a call that has ended fails permanently', async () => {
    const call = await line(provider)
    await call.post(about)
    fake.end('CA01')
    await expect(say(call, 'Too late.', 'CA01')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('a text waits for the provider through a restart', async () => {
    const keyValue = memoryKeyValue()
    const before = await line(provider, {}, { keyValue })
    await before.post(about)
    await say(before, 'Still here.', 'CA01')
    await before.parts.close?.()
    const after = await line(provider, {}, { keyValue })
    expect((await after.post(about, { step: 'say', token: 'reply-1' })).answer).toContain('Still here.')
    expect(
      (await after.post({ ...about, ...{ CallSid: 'CA02', CallUUID: 'CA02' } }, { step: 'say', token: 'reply-1' })).answer,
    ).not.toContain('here')
  })

  test('the line is busy at max_calls, until a call ends', async () => {
    const call = await line(provider, { max_calls: 1 })
    await call.post(about)
    const second = { ...about, CallSid: 'CA02', CallUUID: 'CA02' }
    expect((await call.post(second)).answer).toMatch(/<(Reject|Hangup) reason="busy"\/>/)
    await call.post({ ...about, CallStatus: 'completed' })
    expect((await call.post(second)).answer).toContain('How can I help you?')
  })

  test('a call of ours that is answered at max_calls is hung up', async () => {
    const call = await line(provider, { max_calls: 1 })
    await call.tool({ to: CALLER, message: 'The pump has stopped.' })
    const [dial] = fake.commands
    const url = new URL(String(dial?.values.Url ?? dial?.values.answer_url))
    await call.post(about)
    const ours = { ...about, CallSid: 'CA02', CallUUID: 'CA02', From: OUR_NUMBER, To: CALLER, Direction: 'outbound-api' }
    expect((await call.post(ours, Object.fromEntries(url.searchParams))).answer).toContain('<Hangup/>')
  })

  test('a call that takes too long is ended by the provider', async () => {
    const call = await line(provider, { max_call_duration_secs: 60 })
    await call.post(about)
    await call.host.advance(59_000)
    expect(fake.commands).toEqual([])
    await call.host.advance(3000)
    await expect.poll(() => fake.commands.map(({ action }) => action)).toEqual(['hangup'])
  })

  test('the minutes and dollars of a day end calls and refuse others, also after a restart', async () => {
    const keyValue = memoryKeyValue()
    const call = await line(provider, { max_usd_per_day: 1, usd_per_minute: 0.5 }, { keyValue })
    await call.post(about)
    await call.host.advance(122_000)
    await expect.poll(() => fake.commands.map(({ action }) => action)).toEqual(['hangup'])
    const again = await line(provider, { max_usd_per_day: 1, usd_per_minute: 0.5 }, { keyValue, clock: call.host.clock } as never)
    expect((await again.post({ ...about, CallSid: 'CA03', CallUUID: 'CA03' })).answer).toMatch(/reason="busy"/)
    await expect(again.tool({ to: CALLER, message: 'Hi.' })).rejects.toMatchObject({ code: 'rate_limited' })
  })

  test('the tool calls an allowed number, which hears the message first', async () => {
    const call = await line(provider, { allowed_numbers: [CALLER] })
    await expect(call.tool({ to: '+15550007777', message: 'Hi.' })).rejects.toMatchObject({ code: 'forbidden' })
    expect(await call.tool({ to: '+1 555 000 4444', message: 'The pump has stopped.' })).toContain(CALLER)
    const [dial] = fake.commands
    expect(dial).toMatchObject({ action: 'dial' })
    const url = new URL(String(dial?.values.Url ?? dial?.values.answer_url))
    const answered = { ...about, From: OUR_NUMBER, To: CALLER, Direction: 'outbound-api' }
    expect((await call.post(answered, Object.fromEntries(url.searchParams))).answer).toContain('The pump has stopped.')
    const heard = await call.post({ ...answered, [speech]: 'I will look.' }, { step: 'heard', n: '1' })
    expect(heard.messages).toMatchObject([{ sender: CALLER, account: OUR_NUMBER }])
  })
})

describe('a call at telnyx', () => {
  const state = telnyxState({ remote: CALLER, local: OUR_NUMBER, direction: 'inbound' })
  const payload = { call_control_id: 'v3:1', from: CALLER, to: OUR_NUMBER, direction: 'incoming' }
  const initiated = { event_type: 'call.initiated', payload }
  const answered = { event_type: 'call.answered', payload: { ...payload, client_state: state } }
  const heard = (text: string, id = 'ev-9') => ({
    id,
    event_type: 'call.transcription',
    payload: { call_control_id: 'v3:1', client_state: state, transcription_data: { transcript: text, is_final: true } },
  })

  test('is answered, transcribed and greeted, and the reply is spoken once', async () => {
    const call = await line('telnyx')
    await call.post(initiated)
    await call.post(initiated)
    await call.post(answered)
    await call.post(answered)
    expect(fake.commands.map(({ action }) => action)).toEqual(['answer', 'transcription_start', 'speak'])
    expect(fake.commands[0]?.values.client_state).toBe(state)
    expect((await call.post(heard('turn it on'))).messages).toMatchObject([{ id: 'v3:1/ev-9', sender: CALLER, text: 'turn it on' }])
    await say(call, 'It is on.', 'v3:1')
    await say(call, 'It is on.', 'v3:1')
    expect(fake.commands.filter(({ action }) => action === 'speak').map(({ values }) => values.payload)).toEqual([
      'Hello. How can I help you?',
      'It is on.',
    ])
  })

  test('a command that fails makes the provider repeat its event', async () => {
    const call = await line('telnyx')
    fake.fail({ fault: 'status', status: 503 })
    await expect(call.post(initiated)).rejects.toThrow()
    await call.post(initiated)
    expect(fake.commands.map(({ action }) => action)).toEqual(['answer'])
  })

  test('a caller who is not allowed is rejected', async () => {
    const call = await line('telnyx', { allowed_numbers: [] })
    await call.post(initiated)
    expect(fake.commands).toMatchObject([{ action: 'reject', values: { cause: 'CALL_REJECTED' } }])
  })

  test('a call that was answered is hung up at max_calls, because it can no longer be rejected', async () => {
    const call = await line('telnyx', { max_calls: 1 })
    const second = { ...payload, call_control_id: 'v3:2' }
    await call.post(initiated)
    await call.post({ event_type: 'call.initiated', payload: second })
    await call.post(answered)
    await call.post({ event_type: 'call.answered', payload: { ...second, client_state: state } })
    expect(fake.commands.at(-1)).toMatchObject({ call: 'v3:2', action: 'hangup' })
  })

  test('a call of ours that is answered at max_calls is hung up', async () => {
    const call = await line('telnyx', { max_calls: 1 })
    await call.tool({ to: CALLER, message: 'The pump has stopped.' })
    const { client_state } = fake.commands[0]?.values ?? {}
    await call.post(initiated)
    await call.post(answered)
    await call.post({
      event_type: 'call.answered',
      payload: { call_control_id: 'v3:dialled', from: OUR_NUMBER, to: CALLER, direction: 'outgoing', client_state },
    })
    expect(fake.commands.at(-1)).toMatchObject({ call: 'v3:dialled', action: 'hangup' })
  })

  test('a call of ours begins with its message', async () => {
    const call = await line('telnyx')
    await call.tool({ to: CALLER, message: 'The pump has stopped.' })
    const { client_state } = fake.commands[0]?.values ?? {}
    await call.post({
      event_type: 'call.answered',
      payload: { call_control_id: 'v3:dialled', from: OUR_NUMBER, to: CALLER, direction: 'outgoing', client_state },
    })
    expect(fake.commands.map(({ action }) => action)).toEqual(['dial', 'transcription_start', 'speak'])
    expect(fake.commands[2]?.values.payload).toBe('The pump has stopped.')
  })

  test('a media stream that a restart broke is connected again by a new token, once, and otherwise the call ends', async () => {
    const keyValue = memoryKeyValue()
    const services = { transcribe: async () => '', speak: async () => Promise.reject(new Error('no speech in this test')) } as never
    const streams = () => fake.commands.filter(({ action }) => action === 'streaming_start').map(({ values }) => String(values.stream_url))
    const open = ({ parts }: Line, url = '') => {
      const token = url.split('/').at(-1) ?? ''
      return parts.sockets?.[0]?.open({ headers: new Headers(), url: new URL('wss://x/'), params: { token } })
    }
    const before = await line('telnyx', { audio: 'stream' }, { keyValue, services })
    await before.post(initiated)
    await before.post(answered)
    await before.post(answered)
    expect(streams()).toHaveLength(1)
    open(before, streams()[0])
    await before.parts.close?.()
    const after = await line('telnyx', { audio: 'stream' }, { keyValue, services })
    await after.host.advance(1500)
    await expect.poll(streams).toHaveLength(2)
    expect(() => open(after, streams()[0])).toThrow('There is no such call')
    expect(streams()[1]).not.toBe(streams()[0])
    await after.host.advance(29_000)
    expect(fake.commands.filter(({ action }) => action === 'hangup')).toEqual([])
    await after.host.advance(3000)
    await expect.poll(() => fake.commands.filter(({ action }) => action === 'hangup').length).toBe(1)
  })

  test('a long reply is spoken in parts, in order', async () => {
    const call = await line('telnyx')
    await say(call, 'A sentence of a long reply. '.repeat(200), 'v3:1')
    const parts = fake.commands.map(({ values }) => String(values.payload))
    expect(parts.length).toBeGreaterThan(1)
    for (const part of parts) expect(part.length).toBeLessThanOrEqual(3000)
  })
})

test('each call that the agent places is approved, unless the operator says otherwise', async () => {
  const alwaysAsks = async (change: Values) => (await line('twilio', change)).parts.tools?.[0]?.alwaysAsks
  expect(await alwaysAsks({})).toBe(true)
  expect(await alwaysAsks({ require_outbound_approval: false })).toBeUndefined()
})

test('the section names the keys that its provider needs', async () => {
  expect((await line('twilio', { account_id: undefined })).channel.missingConfig).toBe('account_id')
  expect((await line('telnyx', { public_key: undefined, connection_id: undefined })).channel.missingConfig).toBe(
    'public_key and connection_id',
  )
})

test('a limit of the cost of a day needs the price of a minute', async () => {
  const problemsOf = async (change: Values) =>
    (await voiceCallSection.refine(v.parse(voiceCallSection.schema, { ...sectionOf(fake), ...change }))).problems
  expect(await problemsOf({ max_usd_per_day: 5 })).toMatchObject([{ path: ['usd_per_minute'] }])
  expect(await problemsOf({ max_usd_per_day: 5, usd_per_minute: 0.01 })).toEqual([])
  expect(await problemsOf({})).toEqual([])
})
