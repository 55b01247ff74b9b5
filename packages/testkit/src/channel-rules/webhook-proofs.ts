/** Rules for verifying where the requests of a webhook come from. */

import fc from 'fast-check'
import { expect } from 'vitest'
import type { Proof, WebhookSubject } from '../channel-subject.ts'
import { testHost } from '../host.ts'
import { effort } from '../random.ts'
import type { Rules } from '../rules.ts'
import type { Bench } from './bench.ts'
import { ACCEPTED, verified, type WebhookBench } from './webhook-bench.ts'

/** How many bytes of a body are changed one by one, spread evenly over it. */
const FLIPS_MAX = 600
const LONG_AGO_MS = 24 * 3_600_000
const RUNS = effort(400)

export function proofRules(bench: Bench, subject: WebhookSubject, webhookBench: WebhookBench): Rules {
  const isInBody = subject.prove(webhookBench.bytes, 0).body !== undefined
  return {
    ...acceptanceRules(bench, subject, webhookBench),
    // A body that is not JSON has no place for a token.
    ...(isInBody ? {} : rawBodyRules(bench)),
    ...(subject.covers === 'nothing' ? {} : coverageRules(bench, subject, webhookBench)),
    ...refusalRules(bench, subject, webhookBench),
  }
}

function rawBodyRules({ webhook, raw }: Bench): Rules {
  return {
    'the proof covers the raw bytes of any body': async () => {
      const host = testHost()
      const hook = webhook(host)
      for (const body of fc.sample(fc.uint8Array({ maxLength: 200 }), { numRuns: RUNS, seed: 1 })) {
        expect(await verified(hook, raw(host, body))).toMatchObject(ACCEPTED)
      }
    },
  }
}

function acceptanceRules(bench: Bench, { fixtures, secretKey }: WebhookSubject, { sample }: WebhookBench): Rules {
  const { webhook, raw, expectNoSecret } = bench
  return {
    'a request with a valid proof is accepted': async () => {
      const host = testHost()
      for (const fixture of fixtures) expect(await verified(webhook(host), raw(host, fixture)), fixture.name).toMatchObject(ACCEPTED)
      expectNoSecret(host)
    },

    'without a secret every request is accepted and the missing key is named': async () => {
      const host = testHost()
      expect(webhook(host).unsigned).toBeUndefined()
      const hook = bench.unsigned(host).webhook
      expect(hook?.unsigned).toBe(secretKey)
      expect(await hook?.verify(raw(host, sample, {}))).toMatchObject(ACCEPTED)
    },
  }
}

function coverageRules({ raw }: Bench, { prove }: WebhookSubject, { sample, bytes, refusals }: WebhookBench): Rules {
  return {
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

    'a stale proof is unauthorized, whether from the past or from the future': async () => {
      await refusals(function* (host) {
        for (const ms of [-LONG_AGO_MS, LONG_AGO_MS]) yield raw(host, sample, prove(bytes, host.clock.nowMs() + ms))
      })
    },
  }
}

function refusalRules({ raw }: Bench, { prove, covers }: WebhookSubject, { sample, bytes, refusals }: WebhookBench): Rules {
  return {
    'any one changed character of the proof is unauthorized': async () => {
      await refusals(function* (host) {
        for (const proof of changedProofs(prove(bytes, host.clock.nowMs()))) yield raw(host, sample, proof)
      })
    },

    'a missing or empty part of the proof is unauthorized': async () => {
      await refusals(function* (host) {
        for (const proof of incompleteProofs(prove(bytes, host.clock.nowMs()))) yield raw(host, sample, proof)
      })
    },

    'every refusal carries its reason for the log': async () => {
      const errors = await refusals(function* (host) {
        const proof = prove(bytes, host.clock.nowMs())
        if (covers !== 'nothing') yield { ...raw(host, sample, proof), body: bytes.subarray(0, -1) }
        for (const incomplete of incompleteProofs(proof)) yield raw(host, sample, incomplete)
      })
      for (const { cause } of errors) expect(cause).toEqual(expect.stringMatching(/\S/))
    },

    'every refusal has the same message': async () => {
      const errors = await refusals(function* (host) {
        const proof = prove(bytes, host.clock.nowMs())
        if (covers !== 'nothing') yield { ...raw(host, sample, proof), body: bytes.subarray(0, -1) }
        for (const incomplete of incompleteProofs(proof)) yield raw(host, sample, incomplete)
      })
      expect(new Set(errors.map(({ message }) => message)).size).toBe(1)
    },
  }
}

const PLACES = ['headers', 'query', 'body'] as const

/** Returns the proofs in which one of the places of a proof is as `change` returns it. */
const changedPlaces = (
  proof: Proof,
  change: (parts: Readonly<Record<string, string>>) => readonly Readonly<Record<string, string>>[],
): Proof[] => PLACES.flatMap((place) => change(proof[place] ?? {}).map((parts) => ({ ...proof, [place]: parts })))

/** Returns the proof with each part removed in turn, and with each part empty in turn. */
const incompleteProofs = (proof: Proof): Proof[] =>
  changedPlaces(proof, (parts) =>
    Object.keys(parts).flatMap((name) => {
      const { [name]: _, ...rest } = parts
      return [rest, { ...parts, [name]: '' }]
    }),
  )

/** Returns the proof with each character changed in turn, to one that differs in decimal, hex and base64 of either case. */
const changedProofs = (proof: Proof): Proof[] =>
  changedPlaces(proof, (parts) =>
    Object.entries(parts).flatMap(([name, value]) =>
      Array.from(value, (character, at) => ({
        ...parts,
        [name]: `${value.slice(0, at)}${'aAyY'.includes(character) ? '4' : 'a'}${value.slice(at + 1)}`,
      })),
    ),
  )
