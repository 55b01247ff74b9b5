/** What the fuzzer knows of one way to prove where a request comes from. */
import type { Webhook } from '@sluice/sdk'
import type { Random } from './random.ts'
import type { WebhookRequest } from './request.ts'

export interface Scheme {
  readonly name: string
  /** Mutations that are tried unless the command line says otherwise: a million, or as many as its cost allows. */
  readonly count: number
  /** The channel's own, with a secret. */
  readonly webhook: Webhook
  /** Requests as the provider makes them; each has to be let in as it is. */
  readonly valid: readonly WebhookRequest[]
  /** Whether the proof covers the body; where it does not, no other body is tried. */
  readonly coversBody: boolean
  /** Whether the proof is good for some time only. */
  readonly isTimed: boolean
  /** What somebody without the secret, or a provider with a fault, might send in place of this request; never proved. */
  forge(request: WebhookRequest, random: Random): WebhookRequest
  /**
   * What in a request proves where it comes from, in one spelling: white space trimmed, hex in lower case, an optional prefix
   * taken off, and whatever else is documented to mean the same. Empty for what came too late or too early. A request that
   * holds one of the proofs of `valid` is not a mutation but the same request.
   */
  proofs(request: WebhookRequest): readonly string[]
  /** The channel's own clock, for one that does not go by the time of the request. */
  setClock?(atMs: number): void
}
