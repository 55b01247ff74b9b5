/** Sends mutations of valid requests to a channel's webhook and counts how many it accepts. */
import { AppError, type Webhook } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { RawOf, type WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { type Mutation, mutate, mutationsOf } from './mutate-request.ts'

/** How much to try. */
export interface FuzzOptions {
  readonly random: Random
  readonly count: number
  /** Called at intervals with the number of mutations tried. */
  onProgress?(tried: number): void
}

/**
 * `accepted`: verified and parsed, as a message would be. `unreadable`: verified, but refused as an invalid event.
 * `broken`: an error that the gateway would answer with 500.
 */
export type Outcome = 'refused' | 'unreadable' | 'accepted' | 'broken'

/** A mutation that was not refused. */
export interface Finding extends Mutation {
  readonly outcome: Outcome
  readonly error?: unknown
}

/** The outcome of a run. */
export interface FuzzResult {
  readonly counts: Readonly<Record<Outcome, number>>
  /** Mutations that equal a valid request in another spelling; they are not counted as tried. */
  readonly same: number
  readonly tookMs: number
  /** The first mutations that were not refused. */
  readonly findings: readonly Finding[]
}

const FINDINGS_MAX = 20
const SHOWN_CHARS_MAX = 600
const PROGRESS_EVERY = 10_000
/** More of them in a row mean that the mutations have no effect. */
const SAME_IN_A_ROW_MAX = 10_000

/** The same seed of `random` makes the same mutations. Throws if a valid request is not accepted. */
export async function fuzz(scheme: Scheme, { random, count, onProgress }: FuzzOptions): Promise<FuzzResult> {
  for (const request of scheme.valid) {
    const { outcome, error } = await outcomeOf(scheme, request)
    if (outcome !== 'accepted') throw new Error(`The webhook does not accept a valid request: ${shownRequest(request)}`, { cause: error })
  }
  const known = new Set(scheme.valid.flatMap(scheme.proofs))
  const mutations = mutationsOf(scheme)
  const counts: Record<Outcome, number> = { refused: 0, unreadable: 0, accepted: 0, broken: 0 }
  const findings: Finding[] = []
  let same = 0

  const nextMutation = (): Mutation => {
    for (let row = 0; row < SAME_IN_A_ROW_MAX; row++) {
      const mutation = mutate(scheme, mutations, random)
      if (!scheme.proofs(mutation.request).some((proof) => known.has(proof))) return mutation
      same += 1
    }
    throw new Error('The mutations have no effect.')
  }

  const startedAtMs = performance.now()
  for (let tried = 1; tried <= count; tried++) {
    const mutation = nextMutation()
    const { outcome, error } = await outcomeOf(scheme, mutation.request)
    counts[outcome] += 1
    if (outcome !== 'refused' && findings.length < FINDINGS_MAX) findings.push({ outcome, ...mutation, error })
    if (tried % PROGRESS_EVERY === 0) onProgress?.(tried)
  }
  return { counts, same, tookMs: performance.now() - startedAtMs, findings }
}

/** A request as text, for reports; the secrets in it belong to the fuzzer alone. */
export function shownRequest({ headers, query, body, atMs }: WebhookRequest): string {
  return JSON.stringify({ headers, query, atMs, body: Buffer.from(body).toString('latin1') }).slice(0, SHOWN_CHARS_MAX)
}

type Result = Pick<Finding, 'outcome' | 'error'>

function outcomeOf({ webhook, setClock }: Scheme, request: WebhookRequest): Result | Promise<Result> {
  setClock?.(request.atMs)
  const raw = new RawOf(request)
  try {
    const verified = webhook.verify(raw)
    // Most checks are synchronous, and a million needless awaits take a second.
    if (verified instanceof Promise) return verified.then(() => reading(webhook, raw), refusal)
  } catch (error) {
    return refusal(error)
  }
  return reading(webhook, raw)
}

async function reading(webhook: Webhook, raw: RawOf): Promise<Result> {
  try {
    await webhook.parse(raw)
    return { outcome: 'accepted' }
  } catch (error) {
    return { outcome: isRefusal(error, 'invalid_request') ? 'unreadable' : 'broken', error }
  }
}

const refusal = (error: unknown): Result => ({ outcome: isRefusal(error, 'unauthorized') ? 'refused' : 'broken', error })

const isRefusal = (error: unknown, code: AppError['code']): boolean => error instanceof AppError && error.code === code
