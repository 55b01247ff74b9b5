/** Rules for messages that arrive over HTTP. */
import { AppError, type Inbound, isAllowed, type Raw, type Webhook } from '@sluice/sdk'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { ChannelFixture, Proof, WebhookSubject } from '../channel-subject.ts'
import { testHost } from '../host.ts'
import type { Rules } from '../rules.ts'
import type { Bench } from './bench.ts'

/** How many bytes of a body are changed one by one, spread evenly over it. */
const FLIPS_MAX = 600
const LONG_AGO_MS = 24 * 3_600_000
const RUNS = 200
const ACCEPTED = { by: expect.stringMatching(/\S/) }

export function webhookRules(bench: Bench, { fixtures, own, prove, secretKey, handshake }: WebhookSubject): Rules {
  const { webhook, raw, expectNoSecret } = bench
  const parse = async (fixture: ChannelFixture, allow?: readonly string[]): Promise<readonly Inbound[]> => {
    const host = testHost()
    const { webhook } = bench.channel(host, allow)
    return (await webhook?.parse(raw(host, fixture))) ?? []
  }
  const messages = async () => (await Promise.all(fixtures.map((fixture) => parse(fixture)))).flat()
  const [sample] = fixtures
  if (!sample) throw new Error('webhook: give at least one fixture')
  const bytes = new TextEncoder().encode(sample.body)

  /** Verifies requests that must all be refused, and returns their errors. */
  const refusals = async (requests: (host: ReturnType<typeof testHost>) => Iterable<Raw>): Promise<AppError[]> => {
    const host = testHost()
    const errors: AppError[] = []
    const hook = webhook(host)
    for (const request of requests(host)) {
      const error = await verified(hook, request)
      expect(error).toBeInstanceOf(AppError)
      expect(error).toMatchObject({ code: 'unauthorized' })
      errors.push(error as AppError)
    }
    expect(errors).not.toEqual([])
    expectNoSecret(host, errors)
    return errors
  }

  return {
    'each fixture parses to its expected messages': async () => {
      for (const fixture of fixtures) expect(await parse(fixture), fixture.name).toEqual(fixture.expect)
      expect(fixtures.some((fixture) => fixture.expect.length > 0)).toBe(true)
    },

    'every message has all its parts and an id unique in its payload': async () => {
      for (const fixture of fixtures) {
        const parsed = await parse(fixture)
        for (const { id, account, sender, to } of parsed) for (const part of [id, account, sender, to.to]) expect(part).toMatch(/\S/)
        expect(new Set(parsed.map(({ account, id }) => `${account} ${id}`)).size).toBe(parsed.length)
        expect(JSON.parse(JSON.stringify(parsed.map(({ to }) => to)))).toEqual(parsed.map(({ to }) => to))
      }
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

    'the gateway applies the allowlist, not the channel': async () => {
      const { normalise } = bench.channel()
      for (const { sender } of await messages()) {
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

    'a request with a valid proof is accepted': async () => {
      const host = testHost()
      for (const fixture of fixtures) expect(await verified(webhook(host), raw(host, fixture)), fixture.name).toMatchObject(ACCEPTED)
      expectNoSecret(host)
    },

    'the proof covers the raw bytes of any body': async () => {
      const host = testHost()
      const hook = webhook(host)
      for (const body of fc.sample(fc.uint8Array({ maxLength: 200 }), { numRuns: RUNS, seed: 1 })) {
        expect(await verified(hook, raw(host, body))).toMatchObject(ACCEPTED)
      }
    },

    'any one changed byte of the body is unauthorized': async () => {
      await refusals(function* (host) {
        const proof = prove(bytes, host.clock.nowMs())
        for (let at = 0; at < bytes.length; at += Math.ceil(bytes.length / FLIPS_MAX)) {
          const changed = Uint8Array.from(bytes)
          changed[at] = (changed[at] ?? 0) ^ 1
          yield { ...raw(host, sample, proof), body: changed }
        }
        yield { ...raw(host, sample, proof), body: bytes.subarray(0, -1) }
        yield { ...raw(host, sample, proof), body: new Uint8Array() }
      })
    },

    'any one changed character of the proof is unauthorized': async () => {
      await refusals(function* (host) {
        for (const proof of changedProofs(prove(bytes, host.clock.nowMs()))) yield raw(host, sample, proof)
      })
    },

    'a missing or empty part of the proof is unauthorized': async () => {
      await refusals(function* (host) {
        for (const proof of lackingProofs(prove(bytes, host.clock.nowMs()))) yield raw(host, sample, proof)
      })
    },

    'a stale proof is unauthorized, whether from the past or from the future': async () => {
      await refusals(function* (host) {
        for (const ms of [-LONG_AGO_MS, LONG_AGO_MS]) yield raw(host, sample, prove(bytes, host.clock.nowMs() + ms))
      })
    },

    'every refusal carries its reason for the log': async () => {
      const errors = await refusals(function* (host) {
        const proof = prove(bytes, host.clock.nowMs())
        yield { ...raw(host, sample, proof), body: bytes.subarray(0, -1) }
        for (const lacking of lackingProofs(proof)) yield raw(host, sample, lacking)
      })
      for (const { cause } of errors) expect(cause).toEqual(expect.stringMatching(/\S/))
    },

    'without a secret every request is accepted and the missing key is named': async () => {
      const host = testHost()
      expect(webhook(host).unsigned).toBeUndefined()
      const hook = bench.unsigned(host).webhook
      expect(hook?.unsigned).toBe(secretKey)
      expect(await hook?.verify(raw(host, sample, {}))).toMatchObject(ACCEPTED)
    },

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

    'every refusal has the same message': async () => {
      const errors = await refusals(function* (host) {
        const proof = prove(bytes, host.clock.nowMs())
        yield { ...raw(host, sample, proof), body: bytes.subarray(0, -1) }
        for (const lacking of lackingProofs(proof)) yield raw(host, sample, lacking)
      })
      expect(new Set(errors.map(({ message }) => message)).size).toBe(1)
    },

    'any bytes parse to messages or fail with invalid_request': async () => {
      const host = testHost()
      const hook = webhook(host)
      const bodies = [
        ...fc.sample(fc.uint8Array({ maxLength: 300 }), { numRuns: RUNS, seed: 2 }),
        ...fc.sample(fc.json(), { numRuns: RUNS, seed: 3 }).map((json) => new TextEncoder().encode(json)),
        ...fixtures.flatMap(({ body }) => damaged(body)).map((json) => new TextEncoder().encode(json)),
      ]
      for (const body of bodies) {
        for (const headers of [sample.headers, {}]) {
          const request = { ...raw(host, { body: '', headers }), body }
          const outcome = await attempt(() => hook.parse(request))
          if (!Array.isArray(outcome))
            expect(outcome, new TextDecoder().decode(body)).toMatchObject({ name: 'AppError', code: 'invalid_request' })
          expectNoSecret(host, outcome)
        }
      }
    },

    ...(handshake ? handshakeRules(bench, handshake) : {}),
  }
}

function handshakeRules({ webhook }: Bench, { query, tokenKey, challengeKey }: NonNullable<WebhookSubject['handshake']>): Rules {
  const ask = async (changes: Readonly<Record<string, string | undefined>>): Promise<[status: number, text: string]> => {
    const asked = Object.entries({ ...query, ...changes }).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const response = webhook().handshake?.(new URL(`http://localhost/webhook?${new URLSearchParams(asked)}`))
    return [response?.status ?? 0, (await response?.text()) ?? '']
  }
  return {
    'the handshake returns the challenge': async () => {
      expect(await ask({})).toEqual([200, query[challengeKey]])
      expect(await ask({ [challengeKey]: '<b>1</b>' })).toEqual([200, '<b>1</b>'])
    },
    'the handshake accepts the query the channel builds': async () => {
      const asked = webhook().handshakeQuery?.('98765') ?? {}
      const response = webhook().handshake?.(new URL(`http://localhost/webhook?${new URLSearchParams(asked)}`))
      expect(await response?.text()).toBe('98765')
    },
    'a wrong handshake token is 403, a missing challenge 400': async () => {
      for (const token of ['wrong', '', undefined]) expect((await ask({ [tokenKey]: token }))[0]).toBe(403)
      expect((await ask({ [challengeKey]: undefined }))[0]).toBe(400)
    },
  }
}

/** Runs the step and returns its result or the error it throws. */
const attempt = async (step: () => unknown): Promise<unknown> => {
  try {
    return await step()
  } catch (error) {
    return error
  }
}

/** Returns the result of `verify`, or the error it throws. */
const verified = (hook: Webhook, request: Raw): Promise<unknown> => attempt(() => hook.verify(request))

/** Returns the proof with each part removed in turn, and with each part empty in turn. */
function lackingProofs({ headers = {}, query = {} }: Proof): Proof[] {
  const lacking = (parts: Readonly<Record<string, string>>) =>
    Object.keys(parts).flatMap((name) => {
      const { [name]: _, ...rest } = parts
      return [rest, { ...parts, [name]: '' }]
    })
  return [
    ...lacking(headers).map((changed) => ({ headers: changed, query })),
    ...lacking(query).map((changed) => ({ headers, query: changed })),
  ]
}

/** Returns the proof with each character changed in turn, to one that differs in decimal, hex and base64 of either case. */
function changedProofs({ headers = {}, query = {} }: Proof): Proof[] {
  const changed = (parts: Readonly<Record<string, string>>) =>
    Object.entries(parts).flatMap(([name, value]) =>
      Array.from(value, (character, at) => ({
        ...parts,
        [name]: `${value.slice(0, at)}${'aAyY'.includes(character) ? '4' : 'a'}${value.slice(at + 1)}`,
      })),
    )
  return [...changed(headers).map((parts) => ({ headers: parts, query })), ...changed(query).map((parts) => ({ headers, query: parts }))]
}

/** Returns the JSON with each member removed or replaced by a value of another type; empty if the text is not JSON. */
function damaged(json: string): string[] {
  let root: unknown
  try {
    root = JSON.parse(json)
  } catch {
    return []
  }
  const results: string[] = []
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return
    const parent = value as Record<string, unknown>
    for (const key of Object.keys(parent)) {
      const kept = parent[key]
      for (const other of [undefined, null, 0, '', [], {}, true, 'x']) {
        parent[key] = other
        results.push(JSON.stringify(root))
      }
      parent[key] = kept
      visit(kept)
    }
  }
  visit(root)
  return results
}
