/** Media streams: speech becomes messages, replies are spoken and can be interrupted, for the messages of all providers. */

import { AppError, type FeatureSocket, type Inbound, type SocketListener } from '@sluice/sdk'
import { rawRequest } from '@sluice/sdk/webhook'
import { toneWav } from '@sluice/speech/testing'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import { loudness } from '@sluice/voice-common'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { fromWav, RATE, toMulaw } from './audio.ts'
import { voiceCallSection } from './config.ts'
import feature from './index.ts'
import { AUTH_TOKEN, BASE_URL, formSectionOf, OUR_NUMBER } from './testing/index.ts'
import { twilioSignature } from './twilio.ts'

const CALLER = '+15550004444'
const CALL = { CallSid: 'CA01', From: CALLER, To: OUR_NUMBER, Direction: 'inbound', CallStatus: 'in-progress' }
/** 20 ms of the tone that the caller speaks, and of silence, as μ-law. */
const LOUD = toMulaw(fromWav(toneWav(20, RATE)))
const QUIET = toMulaw(new Int16Array(160))

/** An utterance that cannot be recognised. */
const UNHEARD = '(unheard)'
/** An utterance whose recognition does not end during the test. */
const SLOW = '(slow)'

interface Sent {
  readonly event: string
  readonly streamSid?: string
  readonly mark?: { readonly name: string }
  readonly media?: { readonly payload: string }
}

const opened: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})

/** A call with a media stream, whose every utterance is recognised as the given texts in turn. */
async function stream(
  texts: readonly string[] = [],
  change: object = {},
  speak: (text: string) => Promise<Uint8Array> = async (text) => toneWav(text.length * 20),
  failures = 0,
) {
  const heard: Uint8Array[] = []
  const spoken: string[] = []
  const waiting = [...texts]
  const host: TestHost = testHost({
    fetch: async (input) => {
      throw new Error(`no request was expected, not even to ${String(input)}`)
    },
    services: {
      transcribe: async ({ bytes }) => {
        heard.push(bytes)
        const text = waiting.shift() ?? ''
        if (text === SLOW) await new Promise(() => {})
        if (text === UNHEARD) throw new AppError('unavailable', 'the service is away')
        return text
      },
      speak: async (text) => {
        spoken.push(text)
        return { bytes: await speak(text), format: 'wav', mime: 'audio/wav' }
      },
    },
  })
  const section = { ...formSectionOf('twilio', { url: 'http://127.0.0.1:9' }), audio: 'stream', ...change }
  const parts = feature.build(host, v.parse(voiceCallSection.schema, section))
  await parts.register?.(new AbortController().signal)
  const [channel] = parts.channels ?? []
  const [route] = parts.sockets ?? []
  if (!channel || !route) throw new Error('the feature has no channel or no socket')
  const messages: Inbound[] = []
  let failuresLeft = failures
  const listening = startListening(channel, host, async (message) => {
    if (failuresLeft-- > 0) throw new Error('the disk is full')
    messages.push(message)
  })
  opened.push(async () => {
    await listening.stop()
    await parts.close?.()
  })
  const post = async (form: Readonly<Record<string, string>>, query = ''): Promise<string> => {
    const path = `/voice/inbound${query}`
    const body = new URLSearchParams(form)
    const headers = { 'x-twilio-signature': twilioSignature(AUTH_TOKEN, BASE_URL + path, body) }
    const raw = rawRequest({
      headers,
      url: `http://x${path}`,
      body: new TextEncoder().encode(body.toString()),
      receivedAtMs: host.clock.nowMs(),
    })
    await channel.webhook?.verify(raw)
    return (await (await channel.webhook?.answer?.(raw))?.text()) ?? ''
  }
  const sent: Sent[] = []
  const closes: (number | undefined)[] = []
  /** Connects the stream that an answer names, as Twilio does. */
  const connect = (answer: string, callSid = 'CA01'): SocketListener => {
    const url = new URL(/<Stream url="([^"]+)"\/>/.exec(answer)?.[1] ?? '')
    const token = url.pathname.split('/').at(-1) ?? ''
    expect(url.href.startsWith('wss://gw.example.com/ws/voice/')).toBe(true)
    const socket: FeatureSocket = {
      send: (data) => void sent.push(JSON.parse(String(data))),
      bufferedBytes: 0,
      close: (code) => void closes.push(code),
    }
    const listener = route.open({ headers: new Headers(), url, params: { token } })(socket)
    listener.message(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }))
    listener.message(
      JSON.stringify({
        event: 'start',
        sequenceNumber: '1',
        start: {
          streamSid: 'MZ1',
          callSid,
          tracks: ['inbound'],
          mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
        },
        streamSid: 'MZ1',
      }),
    )
    return listener
  }
  return { host, channel, route, post, connect, messages, heard, spoken, sent, closes, listening }
}

const hear = (listener: SocketListener, frame: Uint8Array, ms: number, track = 'inbound'): void => {
  for (let at = 0; at < ms; at += 20)
    listener.message(
      JSON.stringify({
        event: 'media',
        streamSid: 'MZ1',
        media: { track, chunk: '1', timestamp: '5', payload: Buffer.from(frame).toString('base64') },
      }),
    )
}
/** The caller says something, and pauses. */
const speakTo = (listener: SocketListener): void => {
  hear(listener, LOUD, 500)
  hear(listener, QUIET, 1000)
}
const eventsOf = (sent: readonly Sent[]) => sent.map(({ event }) => event)

describe('a media stream', () => {
  test('greets, recognises the words of the caller, and speaks the reply', async () => {
    const call = await stream(['Turn on the light.'])
    const listener = call.connect(await call.post({ ...CALL, CallStatus: 'ringing' }))
    await expect.poll(() => eventsOf(call.sent)).toEqual(['media', 'mark'])
    expect(call.spoken).toEqual(['Hello. How can I help you?'])
    const audio = Buffer.from(call.sent[0]?.media?.payload ?? '', 'base64')
    expect(audio.length).toBe((26 * 20 * RATE) / 1000)
    listener.message(JSON.stringify({ event: 'mark', streamSid: 'MZ1', mark: call.sent[1]?.mark }))
    speakTo(listener)
    await expect
      .poll(() => call.messages)
      .toMatchObject([
        {
          account: OUR_NUMBER,
          sender: CALLER,
          text: 'Turn on the light.',
          to: { to: CALLER, more: { call: 'CA01' } },
          sentAtMs: call.host.clock.nowMs(),
        },
      ])
    expect(loudness(fromWav(call.heard[0] ?? new Uint8Array()))).toBeGreaterThan(0.05)
    const sent = await call.channel.send(
      { to: CALLER, more: { call: 'CA01' } },
      { text: 'It is on.', clientId: 'r1' },
      new AbortController().signal,
    )
    expect(sent.id).toBe('CA01/r1')
    expect(eventsOf(call.sent)).toEqual(['media', 'mark', 'media', 'mark'])
    expect(call.sent.every(({ streamSid }) => streamSid === 'MZ1')).toBe(true)
  })

  test('the words of a caller are not lost while the store fails', async () => {
    const call = await stream(['Turn on the light.'], {}, undefined, 2)
    const listener = call.connect(await call.post(CALL))
    hear(listener, LOUD, 600)
    hear(listener, QUIET, 1000)
    await expect
      .poll(async () => {
        await call.host.advance(1000)
        return call.messages.map(({ text }) => text)
      })
      .toEqual(['Turn on the light.'])
  })

  test('a caller who speaks stops the reply at once, and the rest of it is not spoken', async () => {
    const call = await stream(['Wait.'])
    const listener = call.connect(await call.post(CALL))
    await expect.poll(() => eventsOf(call.sent)).toEqual(['media', 'mark'])
    hear(listener, LOUD, 200)
    expect(eventsOf(call.sent)).toEqual(['media', 'mark', 'clear'])
    hear(listener, LOUD, 400)
    expect(eventsOf(call.sent)).toEqual(['media', 'mark', 'clear'])
  })

  test('a reply whose audio is ready only after the caller has spoken is not spoken', async () => {
    const gate = Promise.withResolvers<Uint8Array>()
    const call = await stream(['Wait.'], {}, async (text) => (text === 'Long reply.' ? gate.promise : toneWav(20)))
    const listener = call.connect(await call.post(CALL))
    await expect.poll(() => eventsOf(call.sent)).toEqual(['media', 'mark'])
    const sending = call.channel.send(
      { to: CALLER, more: { call: 'CA01' } },
      { text: 'Long reply.', clientId: 'r1' },
      new AbortController().signal,
    )
    hear(listener, LOUD, 200)
    gate.resolve(toneWav(1000))
    await sending
    expect(eventsOf(call.sent)).toEqual(['media', 'mark', 'clear'])
  })

  test('words that cannot be recognised are answered, unless the text for that is empty', async () => {
    const call = await stream([UNHEARD, 'Book a table.'])
    const listener = call.connect(await call.post(CALL))
    await expect.poll(() => call.spoken.length).toBe(1)
    speakTo(listener)
    await expect.poll(() => call.spoken.at(-1)).toBe('Sorry, I could not understand that. Please say it again.')
    speakTo(listener)
    await expect.poll(() => call.messages.map(({ text }) => text)).toEqual(['Book a table.'])
    const silent = await stream([UNHEARD, 'Book a table.'], { not_understood: '' })
    const other = silent.connect(await silent.post(CALL))
    await expect.poll(() => silent.spoken.length).toBe(1)
    speakTo(other)
    speakTo(other)
    await expect.poll(() => silent.messages.length).toBe(1)
    expect(silent.spoken).toHaveLength(1)
  })

  test('words that are dropped, because many wait to be recognised, are answered', async () => {
    const call = await stream([SLOW])
    const listener = call.connect(await call.post(CALL))
    await expect.poll(() => call.spoken.length).toBe(1)
    for (let said = 0; said < 8; said++) speakTo(listener)
    await expect.poll(() => call.heard.length).toBe(1)
    expect(call.spoken).toHaveLength(1)
    speakTo(listener)
    await expect.poll(() => call.spoken.slice(1)).toEqual(['Sorry, I could not understand that. Please say it again.'])
  })

  test('noise other than speech, and our own voice, are not recognised', async () => {
    const call = await stream(['never'])
    const listener = call.connect(await call.post(CALL))
    hear(listener, LOUD, 40)
    hear(listener, QUIET, 3000)
    hear(listener, LOUD, 3000, 'outbound')
    listener.message(new Uint8Array([1, 2, 3]))
    listener.message('{"event":"media"')
    expect(call.heard).toEqual([])
  })

  test('speech without words is not a message', async () => {
    const call = await stream([''])
    const listener = call.connect(await call.post(CALL))
    speakTo(listener)
    await expect.poll(() => call.heard.length).toBe(1)
    expect(call.messages).toEqual([])
  })

  test('a silent caller is asked, and after two prompts the call ends', async () => {
    const call = await stream([], { silence_secs: 10 })
    const listener = call.connect(await call.post(CALL))
    await expect.poll(() => call.spoken.length).toBe(1)
    const played = () => {
      for (const { mark } of call.sent) if (mark) listener.message(JSON.stringify({ event: 'mark', mark }))
    }
    for (const prompts of [1, 2]) {
      played()
      await call.host.advance(11_000)
      await expect.poll(() => call.spoken.filter((text) => text === 'Are you still there?').length).toBe(prompts)
    }
    played()
    await call.host.advance(11_000)
    expect(call.host.logs).toContainEqual(
      expect.objectContaining({ message: 'a call is being ended', fields: { call: 'CA01', why: 'silence' } }),
    )
  })

  test('a stream needs the token of its call, and carries that call only', async () => {
    const call = await stream()
    const answer = await call.post(CALL)
    const open = (token: string) => call.route.open({ headers: new Headers(), url: new URL('wss://x/'), params: { token } })
    for (const token of ['', 'wrong']) expect(() => open(token)).toThrow('There is no such call')
    call.connect(answer, 'CA99')
    expect(call.closes).toEqual([1008])
  })

  test('a token opens one stream: a later reader of it cannot take over the call', async () => {
    const call = await stream()
    const answer = await call.post(CALL)
    // Twilio may ask twice before it connects.
    expect(await call.post(CALL)).toBe(answer)
    call.connect(answer)
    expect(() => call.connect(answer)).toThrow('There is no such call')
    const again = await call.post(CALL, '?again=1')
    expect(again).not.toBe(answer)
    expect(() => call.connect(answer)).toThrow('There is no such call')
    call.connect(again)
  })

  test('a call whose stream is not connected again is ended', async () => {
    const call = await stream()
    const listener = call.connect(await call.post(CALL))
    await expect.poll(() => call.spoken.length).toBe(1)
    await call.host.advance(300)
    listener.closed()
    await call.host.advance(32_000)
    expect(call.host.logs).toContainEqual(
      expect.objectContaining({ message: 'a call is being ended', fields: { call: 'CA01', why: 'the provider was not heard of' } }),
    )
  })

  test('a call whose stream breaks is connected again without a greeting', async () => {
    const call = await stream()
    const first = call.connect(await call.post(CALL))
    await expect.poll(() => call.spoken.length).toBe(1)
    first.closed()
    call.connect(await call.post(CALL, '?again=1'))
    await call.channel.send({ to: CALLER, more: { call: 'CA01' } }, { text: 'Still here.', clientId: 'r1' }, new AbortController().signal)
    expect(call.spoken).toEqual(['Hello. How can I help you?', 'Still here.'])
  })

  test('a reply of a call that ends meanwhile fails permanently', async () => {
    const gate = Promise.withResolvers<Uint8Array>()
    const call = await stream([], {}, async (text) => (text === 'Late.' ? gate.promise : toneWav(20)))
    const listener = call.connect(await call.post(CALL))
    await expect.poll(() => call.spoken.length).toBe(1)
    const sending = call.channel.send(
      { to: CALLER, more: { call: 'CA01' } },
      { text: 'Late.', clientId: 'r1' },
      new AbortController().signal,
    )
    await expect.poll(() => call.spoken.length).toBe(2)
    listener.closed()
    gate.resolve(toneWav(20))
    await expect(sending).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('without [speech], the provider speaks and recognises', async () => {
    const host = testHost()
    const parts = feature.build(
      host,
      v.parse(voiceCallSection.schema, { ...formSectionOf('twilio', { url: 'http://127.0.0.1:9' }), audio: 'stream' }),
    )
    const body = new URLSearchParams(CALL)
    const headers = { 'x-twilio-signature': twilioSignature(AUTH_TOKEN, `${BASE_URL}/voice/inbound`, body) }
    const raw = rawRequest({ headers, url: 'http://x/voice/inbound', body: new TextEncoder().encode(body.toString()), receivedAtMs: 0 })
    expect(await (await parts.channels?.[0]?.webhook?.answer?.(raw))?.text()).toContain('<Gather')
    expect(host.logs).toContainEqual(expect.objectContaining({ level: 'warn', message: expect.stringContaining('[speech]') }))
  })
})
