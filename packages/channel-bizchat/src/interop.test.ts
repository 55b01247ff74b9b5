/** Runs the channel against a fake of the platform over real sockets, with faults on the wire. */
import { AppError, type Channel, type PublicRequest } from '@sluice/sdk'
import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { bizchatSection } from './config.ts'
import feature from './index.ts'
import { BIZCHAT_TOKEN, type BizchatFakeOptions, startBizchatFake } from './testing/fake.ts'

const never = new AbortController().signal

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const outcomeOf = (step: Promise<unknown> | undefined): Promise<unknown> =>
  Promise.resolve(step).then(
    () => 'done',
    (error: unknown) => (error instanceof AppError ? error.code : error),
  )

const arrange = async (options: BizchatFakeOptions = {}, config: object = {}, overrides: TestHostOverrides = isPrivate) => {
  const fake = await startBizchatFake(options)
  closing.push(fake.close)
  const host = testHost({ fetch, ...overrides })
  const parsed = v.parse(bizchatSection.schema, { api_token: BIZCHAT_TOKEN, api_url: fake.url, ...config })
  const [channel] = feature.build(host, parsed).channels ?? []
  if (!channel) throw new Error('the feature built no channel')
  const send = ({ to = '15550002222', text = 'hello', signal = never } = {}) => channel.send({ to }, { text, clientId: 'client-1' }, signal)
  const fetchMedia = (url: string, { bytesMax = 1000, signal = never } = {}) =>
    (channel as Required<Channel>).fetchMedia({ kind: 'audio', name: 'x', source: { url } }, { bytesMax, signal })
  return { fake, channel, send, fetchMedia, logs: host.logs }
}

/** A host on which the address of `api_url` is not public. */
const isPrivate: TestHostOverrides = {
  publicFetch: async () => expect.unreachable('the host of api_url is private'),
  publicAddresses: async () => {
    throw new AppError('forbidden', 'the address is not public')
  },
}

/** Starts a server with another host name, which must get no request. */
const startStranger = async () => {
  const stranger = await startFakeProvider(() => ({ status: 200, body: { message: { id: 'stolen' } } }))
  closing.push(stranger.close)
  return { requests: stranger.requests, url: stranger.url.replace('127.0.0.1', 'localhost') }
}

describe('send', () => {
  test('sends to the sender', async () => {
    const { fake, send } = await arrange()
    const { id } = await send()
    expect(fake.sent).toEqual([{ id, channel: '15550001111', to: '15550002222', text: 'hello' }])
  })

  test('sends the longest text in any script unchanged', async () => {
    const { fake, send, channel } = await arrange()
    const text = '😀é\n'.repeat(channel.limits.text / 4)
    await send({ text })
    expect(fake.sent[0]?.text).toBe(text)
  })

  test('uses the channel tenant_id, unless the recipient names one', async () => {
    const conversations = { '15550002222': ['support', 'sales'] }
    const { fake, send } = await arrange({ conversations }, { tenant_id: 'sales' })
    await send()
    await send({ to: 'support:15550002222' })
    expect(fake.sent.map(({ channel }) => channel)).toEqual(['sales', 'support'])
  })

  test('reports a recipient with conversations on several channels', async () => {
    const { send } = await arrange({ conversations: { '15550002222': ['support', 'sales'] } })
    await expect(send()).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('please specify the channel') })
  })

  test('rejects a recipient without a conversation', async () => {
    const { send } = await arrange({ conversations: {} })
    await expect(send()).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('Conversation not found') })
  })

  test('accepts an api_url with a slash at its end', async () => {
    const fake = await startBizchatFake()
    closing.push(fake.close)
    const { send } = await arrange({}, { api_url: `${fake.url}//` })
    await send()
    expect(fake.sent).toHaveLength(1)
  })
})

describe('faults on the wire', () => {
  test('reports 429 as rate_limited, with Retry-After if present', async () => {
    const { fake, send } = await arrange()
    fake.fail({ fault: 'status', status: 429, headers: { 'retry-after': '10' } })
    fake.fail({ fault: 'status', status: 429 })
    await expect(send()).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 10 })
    await expect(send()).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: undefined })
    expect(await outcomeOf(send())).toBe('done')
  })

  test('reports 500 and 502 as upstream, because the message may have been sent, and 503 as unavailable', async () => {
    const { fake, send } = await arrange()
    for (const status of [500, 502, 503]) fake.fail({ fault: 'status', status, body: '<html>' })
    for (let i = 0; i < 3; i++) expect(await outcomeOf(send())).toBe(i < 2 ? 'upstream' : 'unavailable')
    expect(await outcomeOf(send())).toBe('done')
  })

  test.each(['lost', 'garbage', 'cut'] as const)('reports a %s answer as upstream, although the message was sent', async (fault) => {
    const { fake, send } = await arrange()
    fake.fail({ fault })
    expect(await outcomeOf(send())).toBe('upstream')
    expect(fake.sent).toHaveLength(1)
  })

  test('reports a success without an id as upstream', async () => {
    const { fake, send } = await arrange()
    for (const body of [{}, { message: null }, { message: { id: '' } }, { ok: true }]) {
      fake.fail({ fault: 'status', status: 200, body })
      expect(await outcomeOf(send())).toBe('upstream')
    }
  })

  test('reports a reset connection as upstream', async () => {
    const { fake, send } = await arrange()
    fake.fail({ fault: 'reset' })
    expect(await outcomeOf(send())).toBe('upstream')
    expect(fake.sent).toEqual([])
  })

  test('waits for a slow answer', async () => {
    const { fake, send } = await arrange()
    fake.fail({ fault: 'slow', ms: 1 })
    expect(await send()).toEqual({ id: fake.sent[0]?.id })
  })

  test('stops waiting for an answer when aborted', async () => {
    const { fake, send } = await arrange()
    const abort = new AbortController()
    fake.fail({ fault: 'hang' })
    const sending = outcomeOf(send({ signal: abort.signal }))
    await expect.poll(() => fake.requests.length).toBe(1)
    abort.abort()
    expect(await sending).toBe('aborted')
  })

  test('does not read an answer beyond its limit', async () => {
    const { fake, send } = await arrange()
    fake.fail({ fault: 'status', status: 200, body: `"${'x'.repeat(2_000_000)}"` })
    expect(await outcomeOf(send())).toBe('upstream')
  })

  test('does not follow a redirect, so the token reaches no other server', async () => {
    const { fake, send, logs } = await arrange()
    const stranger = await startStranger()
    for (const status of [302, 307]) {
      fake.fail({ fault: 'status', status, headers: { location: `${stranger.url}/` } })
      expect(await outcomeOf(send())).toBe('invalid_request')
    }
    expect(stranger.requests).toEqual([])
    expect(JSON.stringify(logs)).not.toContain(BIZCHAT_TOKEN)
  })

  test('sends after an expired token was replaced', async () => {
    const { fake, send } = await arrange()
    fake.changeToken('another')
    expect(await outcomeOf(send())).toBe('unavailable')
    fake.changeToken(BIZCHAT_TOKEN)
    expect(await outcomeOf(send())).toBe('done')
  })

  test('reports a refused connection as unavailable', async () => {
    const { fake, send } = await arrange()
    await fake.close()
    expect(await outcomeOf(send())).toBe('unavailable')
  })
})

describe('fetchMedia', () => {
  const voice = { bytes: Uint8Array.of(0x4f, 0x67, 0x67, 0x53), mime: 'Audio/ogg; codecs=opus' }

  test('fetches with the token from the host of api_url', async () => {
    const { fake, fetchMedia } = await arrange({ media: { 'data/v.ogg': voice } })
    const media = await fetchMedia(fake.mediaUrl('data/v.ogg'))
    expect([[...media.bytes], media.mime]).toEqual([[...voice.bytes], 'audio/ogg'])
  })

  test('rejects another host, another credential and a missing URL', async () => {
    const { fake, fetchMedia } = await arrange()
    const stranger = await startStranger()
    const { port } = new URL(fake.url)
    const elsewhere = [
      stranger.url,
      `http://localhost:${port}/x`,
      `http://127.0.0.1:${port}@${new URL(stranger.url).host}/x`,
      `http://user:pass@127.0.0.1:${port}/x`,
      `file:///etc/passwd`,
      'data/images/9b.jpg',
      '',
    ]
    for (const url of elsewhere) expect(await outcomeOf(fetchMedia(url)), url).toBe('forbidden')
    expect([fake.requests.length, stranger.requests.length]).toEqual([0, 0])
  })

  test('fetches with the token from another port of that host', async () => {
    const { fetchMedia } = await arrange()
    const other = await startBizchatFake({ media: { v: voice } })
    closing.push(other.close)
    expect([...(await fetchMedia(other.mediaUrl('v'))).bytes]).toEqual([...voice.bytes])
  })

  test('uses publicFetch for another port of a public host', async () => {
    const asked: [string, PublicRequest][] = []
    const { fetchMedia } = await arrange(
      {},
      { api_url: 'https://host.example/tenant' },
      {
        publicAddresses: async () => [{ address: '192.0.2.1', family: 4 }],
        async publicFetch(url, request) {
          asked.push([url, request])
          return new Response('OggS')
        },
      },
    )
    await fetchMedia('https://host.example:8443/v')
    expect(asked).toMatchObject([['https://host.example:8443/v', { headers: { authorization: `Bearer ${BIZCHAT_TOKEN}` } }]])
    const [[, { admit } = {}] = []] = asked
    expect(() => admit?.(new URL('https://host.example:9443/'))).not.toThrow()
    for (const hop of ['https://other.example:8443/', 'http://host.example:8443/'])
      expect(() => admit?.(new URL(hop))).toThrow(expect.objectContaining({ code: 'forbidden' }))
  })

  test('does not send the token over plain HTTP when the API uses HTTPS', async () => {
    const { fetchMedia } = await arrange({}, { api_url: 'https://127.0.0.1:1' })
    expect(await outcomeOf(fetchMedia('http://127.0.0.1:1/x'))).toBe('forbidden')
  })

  test('follows redirects within that host', async () => {
    const { fake, fetchMedia } = await arrange({
      media: { a: { movedTo: '/api/file/showFile?fileName=b' }, b: { movedTo: '?fileName=c' }, c: voice },
    })
    expect([...(await fetchMedia(fake.mediaUrl('a'))).bytes]).toEqual([...voice.bytes])
  })

  test('does not follow a redirect to another host', async () => {
    const stranger = await startStranger()
    const { fake, fetchMedia } = await arrange({
      media: { a: { movedTo: `${stranger.url}/x` }, b: { movedTo: '?fileName=a' }, c: { movedTo: 'http://[' } },
    })
    for (const name of ['a', 'b', 'c']) expect(await outcomeOf(fetchMedia(fake.mediaUrl(name)))).toBe('forbidden')
    expect(stranger.requests).toEqual([])
  })

  test('stops after five redirects', async () => {
    const { fake, fetchMedia } = await arrange({ media: { a: { movedTo: '?fileName=a' } } })
    expect(await outcomeOf(fetchMedia(fake.mediaUrl('a')))).toBe('invalid_request')
    expect(fake.requests).toHaveLength(6)
  })

  test('reads up to the limit, with or without a content length', async () => {
    const bytes = new Uint8Array(2_000_000)
    const { fake, fetchMedia } = await arrange({ media: { large: { bytes, mime: 'video/mp4' } } })
    expect(await outcomeOf(fetchMedia(fake.mediaUrl('large'), { bytesMax: 1_999_999 }))).toBe('too_large')
    expect((await fetchMedia(fake.mediaUrl('large'), { bytesMax: 2_000_000 })).bytes).toHaveLength(2_000_000)
  })

  test('rejects media of more than 25 MiB', async () => {
    const bytes = new Uint8Array(25 * 1024 * 1024 + 1)
    const { fake, fetchMedia } = await arrange({ media: { huge: { bytes, mime: 'video/mp4' } } })
    expect(await outcomeOf(fetchMedia(fake.mediaUrl('huge'), { bytesMax: 1e9 }))).toBe('too_large')
  })

  test('reports temporary failures as unavailable and missing media as invalid_request', async () => {
    const { fake, fetchMedia } = await arrange({ media: { v: voice } })
    for (const status of [401, 408, 429, 500, 503]) {
      fake.fail({ fault: 'status', status })
      expect(await outcomeOf(fetchMedia(fake.mediaUrl('v'))), String(status)).toBe('unavailable')
    }
    for (const fault of ['cut', 'reset'] as const) {
      fake.fail({ fault })
      expect(await outcomeOf(fetchMedia(fake.mediaUrl('v'))), fault).toBe('unavailable')
    }
    expect(await outcomeOf(fetchMedia(fake.mediaUrl('gone')))).toBe('invalid_request')
    expect(await outcomeOf(fetchMedia(fake.mediaUrl('v')))).toBe('done')
  })

  test('stops when aborted', async () => {
    const { fake, fetchMedia } = await arrange({ media: { v: voice } })
    const abort = new AbortController()
    fake.fail({ fault: 'hang' })
    const fetching = outcomeOf(fetchMedia(fake.mediaUrl('v'), { signal: abort.signal }))
    await expect.poll(() => fake.requests.length).toBe(1)
    abort.abort()
    expect(await fetching).toBe('aborted')
  })
})
