import type { Webhook } from '@sluice/sdk'
import { createRandom, effort } from '@sluice/testkit/random'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { describe, expect, test } from 'vitest'
import { expectRefused } from './expect-refused.ts'
import { fuzz } from './fuzz.ts'
import { SCHEMES, schemeOf } from './schemes.ts'

/** `fuzz.slow.test.ts` has 5,000, and `pnpm fuzz` a million. */
const COUNT = effort(1000)
/** Enough mutations to find a hole. */
const FEW = 1500
const names = [...SCHEMES.keys()]

describe('a webhook accepts no request without a valid proof', () => {
  test.each(names)(`%s: accepts none of ${COUNT} mutations`, (name) => expectRefused(name, COUNT))
})

describe('the fuzzer finds a check that', () => {
  /** Counts the accepted mutations of a scheme with this check. */
  const accepted = async (name: string, verify: (webhook: Webhook, scheme: Scheme) => Webhook['verify'], count = FEW): Promise<number> => {
    const random = createRandom(3)
    const scheme = await schemeOf(name, random)
    const webhook = { ...scheme.webhook, verify: verify(scheme.webhook, scheme) }
    return (await fuzz({ ...scheme, webhook }, { random, count })).counts.accepted
  }

  test('accepts every request', async () => {
    const count = 100
    for (const name of names) expect(await accepted(name, () => () => ({ by: 'nothing' }), count), name).toBeGreaterThan(count / 4)
  })

  test('ignores the time', async () => {
    for (const name of ['textrelay-legacy', 'textrelay-standard'] as const) {
      const found = await accepted(name, ({ verify }) => (raw) => {
        const time = raw.headers['webhook-timestamp'] ?? raw.headers['x-webhook-timestamp'] ?? ''
        return verify({ headers: raw.headers, url: raw.url, body: raw.body, receivedAtMs: Number(time) * 1000 })
      })
      expect(found, name).toBeGreaterThan(0)
    }
  })

  test('verifies the parsed JSON instead of its bytes', async () => {
    const found = await accepted('chatapp', ({ verify }, { valid }) => {
      const bodies = new Map(valid.map(({ body }) => [meaning(body), body]))
      return (raw) => verify({ headers: raw.headers, url: raw.url, receivedAtMs: 0, body: bodies.get(meaning(raw.body)) ?? raw.body })
    })
    expect(found).toBeGreaterThan(0)
  })

  test('ignores the end of a signature', async () => {
    const found = await accepted('roomchat', ({ verify }, { valid }) => {
      const short = new Map(valid.map(({ headers }) => [signatureIn(headers).slice(0, 60), signatureIn(headers)]))
      return (raw) => {
        const signature = short.get(signatureIn(raw.headers).slice(0, 60))
        const headers = { ...raw.headers, ...(signature !== undefined && { 'x-roomchat-signature': signature }) }
        return verify({ headers, url: raw.url, receivedAtMs: 0, body: raw.body })
      }
    })
    expect(found).toBeGreaterThan(0)
  })

  test('ignores white space or case', async () => {
    for (const name of ['mailpush-bearer', 'bizchat-bearer'] as const) {
      const found = await accepted(name, ({ verify }) => (raw) => {
        const secret = raw.headers.authorization
          ?.replace(/^bearer\s+/i, '')
          .replace(/\s/g, '')
          .toLowerCase()
        return verify({ headers: { authorization: `Bearer ${secret}` }, url: raw.url, receivedAtMs: 0, body: raw.body })
      })
      expect(found, name).toBeGreaterThan(0)
    }
  })
})

test('the same seed makes the same mutations', async () => {
  const run = async () => {
    const random = createRandom(4)
    const scheme = await schemeOf('chatapp', random)
    const { findings } = await fuzz(
      { ...scheme, webhook: { ...scheme.webhook, verify: () => ({ by: 'nothing' }) } },
      { random, count: 100 },
    )
    return findings.map(({ steps, request }) => [steps, request])
  }
  expect(await run()).toEqual(await run())
})

/** Returns the same text for JSON bodies with the same meaning. */
function meaning(body: Uint8Array): string {
  try {
    return JSON.stringify(JSON.parse(Buffer.from(body).toString()))
  } catch {
    return ''
  }
}

const signatureIn = (headers: Readonly<Record<string, string | undefined>>): string =>
  headers['x-roomchat-signature'] ?? headers['x-nextcloud-talk-signature'] ?? ''
