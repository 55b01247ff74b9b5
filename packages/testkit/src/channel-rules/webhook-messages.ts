/** Rules for parsing the requests of a webhook, and for the sample requests it makes. */

import { isAllowed, type Webhook } from '@sluice/sdk'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { WebhookSubject } from '../channel-subject.ts'
import { testHost } from '../host.ts'
import { effort } from '../random.ts'
import type { Rules } from '../rules.ts'
import { expectAddressed } from './addressed.ts'
import type { Bench } from './bench.ts'
import { damaged } from './damaged.ts'
import { ACCEPTED, attempt, verified, type WebhookBench } from './webhook-bench.ts'

const RUNS = effort(400)

export function messageRules(bench: Bench, { fixtures, own }: WebhookSubject, { parse, messages }: WebhookBench): Rules {
  return {
    'each fixture parses to its expected messages': async () => {
      for (const fixture of fixtures) expect(await parse(fixture), fixture.name).toEqual(fixture.expect)
      expect(fixtures.some((fixture) => fixture.expect.length > 0)).toBe(true)
    },

    'every message has all its parts and an id unique in its payload': async () => {
      for (const fixture of fixtures) {
        const parsed = await parse(fixture)
        for (const { id, account, to } of parsed) for (const part of [id, account, to.to]) expect(part).toMatch(/\S/)
        // A platform may not name the person who deletes a message.
        for (const { sender, changes } of parsed) if (changes?.what !== 'deleted') expect(sender).toMatch(/\S/)
        expect(new Set(parsed.map(({ account, id }) => `${account} ${id}`)).size).toBe(parsed.length)
        expect(JSON.parse(JSON.stringify(parsed.map(({ to }) => to)))).toEqual(parsed.map(({ to }) => to))
      }
    },

    'a message has the time from which its reply window counts': async () => {
      if (!bench.channel().limits.replyWindow) return
      for (const { id, sentAtMs } of await messages()) expect(sentAtMs, `sentAtMs of ${id}`).toBeDefined()
    },

    'every message says how it is addressed': async () => {
      for (const message of await messages()) expectAddressed(message)
    },

    "the bot's own messages are ignored": async () => {
      const fixture = fixtures.find(({ name }) => name === own)
      expect(fixture, `the fixture named by 'own': '${own}'`).toBeDefined()
      if (fixture) expect(await parse(fixture)).toEqual([])
    },

    'a replayed request yields the same message ids': async () => {
      for (const fixture of fixtures) {
        const ids = async () => (await parse(fixture)).map(({ account, id }) => [account, id])
        expect(await ids()).toEqual(await ids())
      }
    },

    'a webhook that parses the body alone finds the same messages without headers and URL': async () => {
      const host = testHost()
      const hook = bench.webhook(host)
      if (!hook.parsesBodyAlone) return
      for (const fixture of fixtures) {
        const { body, receivedAtMs } = bench.raw(host, fixture)
        const stored = { headers: {}, url: new URL(`http://localhost${hook.path}`), body, receivedAtMs }
        expect(await hook.parse(stored), fixture.name).toEqual(fixture.expect)
      }
    },

    'the gateway applies the allowlist, not the channel': async () => {
      const { normalise } = bench.channel()
      for (const { sender } of (await messages()).filter((message) => message.sender !== '')) {
        expect(isAllowed([], sender, normalise)).toBe(false)
        expect(isAllowed(['nobody-0'], sender, normalise)).toBe(false)
        expect(isAllowed([sender], sender, normalise)).toBe(true)
        expect(isAllowed(['*'], sender, normalise)).toBe(true)
      }
      for (const fixture of fixtures) for (const allow of [[], ['nobody-0']]) expect(await parse(fixture, allow)).toEqual(fixture.expect)
    },

    'normalising a sender twice changes nothing': async () => {
      const { normalise = (sender: string) => sender } = bench.channel()
      for (const { sender } of await messages()) expect(normalise(normalise(sender))).toBe(normalise(sender))
    },

    ...sampleRules(bench, messages),
    ...anyBodyRules(bench, fixtures),
  }
}

function sampleRules(bench: Bench, messages: WebhookBench['messages']): Rules {
  const { webhook, raw } = bench
  return {
    'a sample request is accepted and parses to its message': async () => {
      const host = testHost()
      const { normalise = (sender: string) => sender } = bench.channel(host)
      const hook = webhook(host)
      const [known] = await messages()
      const sender = known?.sender ?? ''
      const given = { sender, text: 'a “sample” 😀', id: 'sample-0001', atMs: host.clock.nowMs() }
      const request = (made: ReturnType<Webhook['sample']>) =>
        raw(host, { body: made.body, headers: made.headers }, { headers: made.headers, query: made.query ?? {} })
      const made = request(hook.sample(given))
      expect(await verified(hook, made)).toMatchObject(ACCEPTED)
      const parsed = await hook.parse(made)
      expect(parsed.map(({ text }) => text)).toEqual([given.text])
      expect(normalise(parsed[0]?.sender ?? '')).toBe(normalise(sender))
      expect(parsed[0]?.id).toContain(given.id)
      const ignored = request(hook.sample({ ...given, ignored: true }))
      expect(await verified(hook, ignored)).toMatchObject(ACCEPTED)
      expect(await hook.parse(ignored)).toEqual([])
    },
  }
}

function anyBodyRules({ webhook, raw, expectNoSecret }: Bench, fixtures: WebhookSubject['fixtures']): Rules {
  return {
    'any bytes parse to messages or fail with invalid_request': async () => {
      const host = testHost()
      const hook = webhook(host)
      const bodies = [
        ...fc.sample(fc.uint8Array({ maxLength: 300 }), { numRuns: RUNS, seed: 2 }),
        ...fc.sample(fc.json(), { numRuns: RUNS, seed: 3 }).map((json) => new TextEncoder().encode(json)),
        ...fixtures.flatMap(({ body }) => damaged(body)).map((json) => new TextEncoder().encode(json)),
      ]
      const outcomes: unknown[] = []
      for (const body of bodies) {
        for (const headers of [fixtures[0]?.headers ?? {}, {}]) {
          const request = { ...raw(host, { body: '', headers }), body }
          const outcome = await attempt(() => hook.parse(request))
          if (!Array.isArray(outcome))
            expect(outcome, new TextDecoder().decode(body)).toMatchObject({ name: 'AppError', code: 'invalid_request' })
          outcomes.push(outcome)
        }
      }
      expectNoSecret(host, ...outcomes)
    },
  }
}
