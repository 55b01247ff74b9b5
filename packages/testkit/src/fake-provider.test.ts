import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FakeProvider, type ProviderFault, type ProviderReply, type ProviderRequest, startFakeProvider } from './fake-provider.ts'
import { until } from './until.ts'
import { within } from './within.ts'

/** Real milliseconds: how long a test watches for silence, and how long it waits for an end. */
const QUIET_MS = 50
const SOON_MS = 20_000
/** Error codes of `fetch` for a broken connection. */
const BROKEN = /^(?:ECONNRESET|UND_ERR_SOCKET)$/

let fake: FakeProvider
/** The texts of the requests that took effect. */
let done: string[]
let reply: (request: ProviderRequest) => ProviderReply

beforeEach(async () => {
  done = []
  reply = ({ json }) => {
    const { text } = json as { text: string }
    done.push(text)
    return { status: 201, headers: { 'x-id': '1' }, body: { echo: text } }
  }
  fake = await startFakeProvider((request) => reply(request))
})
afterEach(() => fake.close())

test('a connection that is idle is closed by the client and not by the fake, which could cut off a request', async () => {
  const { headers } = await post('hello')
  expect(headers.get('keep-alive')).toBe('timeout=60')
})

const post = (text: string, signal: AbortSignal | null = null, path = '/send') =>
  fetch(fake.url + path, { method: 'POST', body: JSON.stringify({ text }), signal })
/** Returns the text of the answer, the error code of a failed `fetch`, or the error itself. */
const outcome = async (response: Promise<Response>): Promise<unknown> => {
  try {
    return await (await response).text()
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } }
    return cause?.code ?? error
  }
}

describe('a good request', () => {
  test('is recorded in full and answered', async () => {
    const response = await fetch(`${fake.url}/rooms/7?limit=2&limit=3`, {
      method: 'PUT',
      headers: { Authorization: 'Bearer x' },
      body: '{"text":"né"}',
    })
    expect([response.status, response.headers.get('x-id'), await response.json()]).toEqual([201, '1', { echo: 'né' }])
    const [request] = fake.requests
    expect(request).toMatchObject({ method: 'PUT', path: '/rooms/7', json: { text: 'né' } })
    expect(request?.query.getAll('limit')).toEqual(['2', '3'])
    expect(request?.headers.get('authorization')).toBe('Bearer x')
    expect(request?.body.toString()).toBe('{"text":"né"}')
  })

  test('a body that is not JSON has json undefined and keeps its bytes', async () => {
    reply = () => ({ status: 204 })
    expect((await fetch(fake.url, { method: 'POST', body: Uint8Array.of(0xff, 0) })).status).toBe(204)
    expect(fake.requests[0]?.json).toBeUndefined()
    expect([...(fake.requests[0]?.body ?? [])]).toEqual([0xff, 0])
  })

  test('sends text and byte bodies unchanged', async () => {
    for (const body of ['plain', Buffer.from('plain')]) {
      reply = () => ({ status: 200, headers: { 'content-type': 'text/plain' }, body })
      const response = await fetch(fake.url)
      expect([response.headers.get('content-type'), await response.text()]).toEqual(['text/plain', 'plain'])
    }
  })

  test('an error thrown by the fake becomes a 500 with its message', async () => {
    reply = () => {
      throw new Error('not as the platform would')
    }
    const response = await post('hello')
    expect([response.status, await response.json()]).toEqual([500, { fake: 'Error: not as the platform would' }])
  })
})

describe('faults', () => {
  const meet = (fault: ProviderFault, text = 'hello') => {
    fake.fail(fault)
    return post(text)
  }

  test('lost: the request takes effect but its answer never arrives', async () => {
    expect(await outcome(meet({ fault: 'lost' }))).toMatch(BROKEN)
    expect(done).toEqual(['hello'])
  })

  test('reset: the connection breaks before the request takes effect', async () => {
    expect(await outcome(meet({ fault: 'reset' }))).toMatch(BROKEN)
    expect([done, fake.requests.length]).toEqual([[], 1])
  })

  test('hang: the request has no effect and gets no answer', async () => {
    fake.fail({ fault: 'hang' })
    const abort = new AbortController()
    const hanging = outcome(post('hello', abort.signal))
    await expect.poll(() => fake.requests.length).toBe(1)
    expect(await within(QUIET_MS, hanging)).toBe('still running')
    abort.abort()
    expect(await within(SOON_MS, hanging)).toBe('ended')
    expect([done, fake.requests.length]).toEqual([[], 1])
  })

  test('garbage: the request takes effect but the answer is not JSON', async () => {
    const response = await meet({ fault: 'garbage' })
    expect(response.status).toBe(201)
    await expect(response.json()).rejects.toThrow(SyntaxError)
    expect(done).toEqual(['hello'])
  })

  test('cut: the request takes effect but the answer breaks off', async () => {
    const response = await meet({ fault: 'cut' })
    expect([response.status, response.headers.get('content-length')]).toEqual([201, String('{"echo":"hello"}'.length)])
    expect(await outcome(Promise.resolve(response))).toMatch(BROKEN)
    expect(done).toEqual(['hello'])
  })

  test('slow: the request takes effect and the full answer arrives late', async () => {
    const started = performance.now()
    const response = await meet({ fault: 'slow', ms: 20 })
    expect(await response.json()).toEqual({ echo: 'hello' })
    // Timers may be a little early.
    expect(performance.now() - started).toBeGreaterThan(15)
    expect(done).toEqual(['hello'])
  })

  test('slow: sending stops when the client disconnects', async () => {
    fake.fail({ fault: 'slow', ms: 1 })
    const abort = new AbortController()
    const response = await post('x'.repeat(200_000), abort.signal)
    abort.abort()
    expect(await outcome(Promise.resolve(response))).toMatchObject({ name: 'AbortError' })
    expect(await within(SOON_MS, fake.close())).toBe('ended')
  })

  test('status: the request has no effect and gets the given answer', async () => {
    const response = await meet({ fault: 'status', status: 429, headers: { 'retry-after': '7' }, body: { error: 'slow down' } })
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([429, '7', { error: 'slow down' }])
    expect([done, fake.requests.length]).toEqual([[], 1])
  })
})

describe('the fault queue', () => {
  const status = (code: number): ProviderFault => ({ fault: 'status', status: code })
  const statuses = async (...paths: string[]) => {
    const met: number[] = []
    for (const path of paths) met.push((await post('hello', null, path)).status)
    return met
  }

  test('applies faults in order, each the given number of times', async () => {
    fake.fail(status(500), { times: 2 })
    fake.fail(status(429))
    expect(await statuses('/', '/', '/', '/')).toEqual([500, 500, 429, 201])
  })

  test('keeps a fault until a request matches it', async () => {
    fake.fail(status(503), { matches: ({ path }) => path === '/media' })
    fake.fail(status(500), { matches: ({ json }) => (json as { text: string }).text === 'other' })
    expect(await statuses('/send', '/media', '/media')).toEqual([201, 503, 201])
  })
})

test('close breaks hanging requests and frees the port', async () => {
  fake.fail({ fault: 'hang' })
  const hanging = outcome(post('hello'))
  await until(() => fake.requests.length > 0)
  await fake.close()
  expect(await within(SOON_MS, hanging)).toBe('ended')
  const again = await startFakeProvider(() => ({ status: 200 }), { port: Number(new URL(fake.url).port) })
  expect(again.url).toBe(fake.url)
  await expect(startFakeProvider(() => ({ status: 200 }), { port: Number(new URL(again.url).port) })).rejects.toThrow('EADDRINUSE')
  await again.close()
})
