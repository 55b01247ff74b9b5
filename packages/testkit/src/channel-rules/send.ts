/** Rules on messages that go out. */
import { AppError, type Outbound } from '@sluice/sdk'
import { expect } from 'vitest'
import type { SendSubject } from '../channel.ts'
import { type TestHost, testHost } from '../host.ts'
import type { Rules } from '../rules.ts'
import { within } from '../within.ts'
import type { Bench } from './bench.ts'

/** What the outbox sends again, knowing that it was not sent. */
const NOT_SENT = ['rate_limited', 'unavailable']
const NEVER = ['invalid_request', 'forbidden']

export function sendRules({ channel, expectNoSecret }: Bench, { to, answer, id }: SendSubject): Rules {
  const message: Outbound = { text: 'hello', clientId: 'client-message-1' }
  /** Sends to a provider that answers so; what came of it, an error included. */
  const send = async (
    provider: (request: Request) => Response | Promise<Response>,
    changes: { text?: string; signal?: AbortSignal } = {},
  ) => {
    const requests: { url: string; body: string }[] = []
    const host: TestHost = testHost({
      fetch: async (input, init) => {
        const request = new Request(input, init)
        requests.push({ url: request.url, body: await request.clone().text() })
        return provider(request)
      },
    })
    const { signal = new AbortController().signal, text = message.text } = changes
    const outcome = await channel(host)
      .send(to, { ...message, text }, signal)
      .catch((error: unknown) => error)
    expectNoSecret(host, outcome)
    return { outcome, requests }
  }
  const status = (code: number, headers: Record<string, string> = {}) =>
    send(() => new Response('{"error":"no"}', { status: code, headers: { 'content-type': 'application/json', ...headers } }))
  const failed = (code: string) =>
    send(({ url }) => {
      throw new TypeError(`fetch of ${url} failed`, { cause: Object.assign(new Error(code), { code }) })
    })

  return {
    "send gives the provider's id": async () => {
      expect((await send(answer)).outcome).toMatchObject({ id })
    },

    'the longest text goes out whole': async () => {
      const { text } = channel().limits
      const { outcome, requests } = await send(answer, { text: 'Z'.repeat(text) })
      expect(outcome).toMatchObject({ id })
      expect(requests.map(({ body }) => body.split('Z').length - 1).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(text)
    },

    'where the platform drops repeats, it is given the client id': async () => {
      const { requests } = await send(answer)
      if (channel().limits.dedupesClientIds) expect(JSON.stringify(requests)).toContain(message.clientId)
    },

    '429 is rate_limited, with the wait the provider asked for': async () => {
      expect((await status(429, { 'retry-after': '7' })).outcome).toMatchObject({
        name: 'AppError',
        code: 'rate_limited',
        retryAfterSecs: 7,
      })
    },

    'what the provider refuses is never sent again': async () => {
      for (const code of [400, 403]) expect(NEVER).toContain(codeOf((await status(code)).outcome))
    },

    'what never reached the provider is sent again': async () => {
      for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']) expect(NOT_SENT).toContain(codeOf((await failed(code)).outcome))
    },

    'what may have been sent is not sent again, nor given up as refused': async () => {
      const proxy = await send(() => new Response('<html>Bad Gateway</html>', { status: 502 }))
      for (const { outcome } of [await failed('ECONNRESET'), await failed('UND_ERR_SOCKET'), await status(504), proxy]) {
        expect([...NOT_SENT, ...NEVER]).not.toContain(codeOf(outcome))
      }
    },

    'any answer gives an id or an AppError': async () => {
      for (const code of [200, 201, 204, 302, 401, 404, 408, 409, 413, 418, 502, 503, 504]) {
        for (const body of ['', '{', 'null', '[]', '{}', '<html></html>', '{"ok":false}', '{"messages":[]}']) {
          const { outcome } = await send(() => new Response(code === 204 ? null : body, { status: code }))
          if (!(outcome instanceof AppError)) expect(outcome).toMatchObject({ id: expect.stringMatching(/\S/) })
        }
      }
    },

    'send ends soon after its abort': async () => {
      const abort = new AbortController()
      const sending = send(({ signal }) => untilAborted(signal), { signal: abort.signal })
      await new Promise((resolve) => setImmediate(resolve))
      abort.abort()
      expect(await within(1000, sending)).toBe('ended')
      expect((await sending).outcome).toBeInstanceOf(AppError)
    },
  }
}

const codeOf = (outcome: unknown): string => (outcome instanceof AppError ? outcome.code : `no AppError but ${outcome}`)

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
