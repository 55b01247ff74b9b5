/** Rules for sending messages. */
import { type Address, AppError, type Outbound } from '@sluice/sdk'
import { expect } from 'vitest'
import type { SendSubject } from '../channel-subject.ts'
import { type TestHost, testHost } from '../host.ts'
import { replyCorpus } from '../reply-corpus.ts'
import type { Rules } from '../rules.ts'
import { within } from '../within.ts'
import type { Bench } from './bench.ts'
import { messagesOf } from './markup.ts'

const STYLED_REPLIES = 5
/** A word that no encoding of a request changes. */
const ASCII_WORD = /^[a-z0-9_]+$/i

/** Error codes after which the outbox retries: the message was certainly not sent. */
const NOT_SENT = ['rate_limited', 'unavailable']
/** Error codes after which the outbox gives up: the platform refused the message. */
const REFUSED = ['invalid_request', 'forbidden']

export function sendRules({ channel, expectNoSecret }: Bench, { to, answer, id, prior }: SendSubject): Rules {
  const message: Outbound = { text: 'hello', clientId: 'client-message-1' }
  /** Sends a message to a platform that answers with `provider`. Returns the outcome, which may be an error, and the requests. */
  const send = async (
    provider: (request: Request) => Response | Promise<Response>,
    changes: { text?: string; message?: Partial<Outbound>; address?: Address; signal?: AbortSignal } = {},
  ) => {
    const requests: { url: string; body: string }[] = []
    const host: TestHost = testHost({
      fetch: async (input, init) => {
        const request = new Request(input, init)
        const before = prior?.(request)
        if (before) return before
        requests.push({ url: request.url, body: await request.clone().text() })
        return provider(request)
      },
    })
    const { signal = new AbortController().signal, text = message.text, address = to } = changes
    const outcome = await channel(host)
      .send(address, { ...message, text, ...changes.message }, signal)
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
    'send returns the message id of the platform': async () => {
      expect((await send(answer)).outcome).toMatchObject({ id })
    },

    'a text of the maximum length is sent in full': async () => {
      const { text } = channel().limits
      const { outcome, requests } = await send(answer, { text: 'Z'.repeat(text) })
      expect(outcome).toMatchObject({ id })
      expect(requests.map(({ body }) => body.split('Z').length - 1).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(text)
    },

    'a reply with styles is sent with all its words': async () => {
      for (const { markdown, words } of replyCorpus(STYLED_REPLIES)) {
        for (const reply of messagesOf(channel(), markdown)) {
          const { outcome, requests } = await send(answer, { message: reply })
          expect(outcome).toMatchObject({ id })
          const { text, plain = text } = reply
          const bodies = requests.map(({ body }) => body).join('')
          expect(words.filter((word) => ASCII_WORD.test(word) && plain.includes(word) && !bodies.includes(word))).toEqual([])
        }
      }
    },

    'no id in an address changes the path of the request': async () => {
      const addresses = UNSAFE_IDS.flatMap((unsafe) => [
        { ...to, to: unsafe },
        { ...to, replyTo: unsafe },
        { ...to, thread: unsafe },
      ])
      const expected = segmentsOf((await send(answer)).requests)
      for (const address of addresses) {
        const { outcome, requests } = await send(answer, { address })
        if (requests.length === 0) expect(outcome, JSON.stringify(address)).toMatchObject({ code: 'invalid_request' })
        else expect(segmentsOf(requests), JSON.stringify(address)).toEqual(expected)
      }
    },

    'a platform that drops duplicates receives the client id': async () => {
      const { requests } = await send(answer)
      if (channel().limits.dedupesClientIds) expect(JSON.stringify(requests)).toContain(message.clientId)
    },

    '429 is rate_limited with the requested wait': async () => {
      expect((await status(429, { 'retry-after': '7' })).outcome).toMatchObject({
        name: 'AppError',
        code: 'rate_limited',
        retryAfterSecs: 7,
      })
    },

    'a refused message is never retried': async () => {
      for (const code of [400, 403]) expect(REFUSED).toContain(codeOf((await status(code)).outcome))
    },

    'a message that never left is retried': async () => {
      for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']) expect(NOT_SENT).toContain(codeOf((await failed(code)).outcome))
    },

    'a message that may have arrived is neither retried nor refused': async () => {
      const proxy = await send(() => new Response('<html>Bad Gateway</html>', { status: 502 }))
      for (const { outcome } of [await failed('ECONNRESET'), await failed('UND_ERR_SOCKET'), await status(504), proxy]) {
        expect([...NOT_SENT, ...REFUSED]).not.toContain(codeOf(outcome))
      }
    },

    'any answer yields an id or an AppError': async () => {
      for (const code of [200, 201, 204, 302, 401, 404, 408, 409, 413, 418, 502, 503, 504]) {
        for (const body of ['', '{', 'null', '[]', '{}', '<html></html>', '{"ok":false}', '{"messages":[]}']) {
          const { outcome } = await send(() => new Response(code === 204 ? null : body, { status: code }))
          if (!(outcome instanceof AppError)) expect(outcome).toMatchObject({ id: expect.stringMatching(/\S/) })
        }
      }
    },

    'send ends promptly after an abort': async () => {
      const abort = new AbortController()
      const sending = send(({ signal }) => rejectOnAbort(signal), { signal: abort.signal })
      await new Promise((resolve) => setImmediate(resolve))
      abort.abort()
      expect(await within(1000, sending)).toBe('ended')
      expect((await sending).outcome).toBeInstanceOf(AppError)
    },
  }
}

/** Ids that are not an ordinary segment of a path. */
const UNSAFE_IDS = ['.', '..', '../..', 'a/../..', 'a/b', '?a', '#a', '%2e%2e']

/** How many segments the path of each request has, and whether it has a query or a fragment. */
const segmentsOf = (requests: readonly { readonly url: string }[]) =>
  requests.map(({ url }) => {
    const { pathname, search, hash } = new URL(url)
    return [pathname.split('/').length, search !== '', hash !== '']
  })

const codeOf = (outcome: unknown): string => (outcome instanceof AppError ? outcome.code : `not an AppError: ${outcome}`)

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
