/** The fuzzer's description of one way to prove the origin of a request. */
import type { Webhook } from '@sluice/sdk'
import type { Random } from '../random.ts'
import type { WebhookRequest } from './request.ts'

/** A webhook, valid requests for it, and how to forge others. */
export interface Scheme {
  /** The default number of mutations: a million, or fewer for a costly check. */
  readonly count: number
  /** The channel's own webhook, configured with a secret. */
  readonly webhook: Webhook
  /** Requests as the platform makes them; the webhook must accept each. */
  readonly valid: readonly WebhookRequest[]
  /** Whether the proof covers the body; if it does not, bodies are not mutated. */
  readonly coversBody: boolean
  /**
   * A mutation may move bytes between the body and a signed header, so that the signature stays valid and only the body is no event.
   * Default: false.
   */
  readonly hasMovableBytes?: boolean
  /** Whether the proof expires. */
  readonly isTimed: boolean
  /** Returns a request that an attacker without the secret, or a faulty platform, might send instead; its proof is never valid. */
  forge(request: WebhookRequest, random: Random): WebhookRequest
  /**
   * Returns the proofs in a request in a normal form: trimmed, hex in lower case, without an optional prefix, and with every
   * other documented equivalence applied. Empty if the request is too late or too early. A mutation with one of the proofs of
   * `valid` counts as the same request.
   */
  proofs(request: WebhookRequest): readonly string[]
  /** Sets the channel's clock, for a channel that does not use the time of the request. */
  setClock?(atMs: number): void
}
