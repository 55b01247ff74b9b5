/** What every channel has to keep to: `channelConformance` in the tests of a feature with a channel. */
import type { Address, Feature, Inbound } from '@sluice/sdk'
import { createBench } from './channel-rules/bench.ts'
import { buildRules } from './channel-rules/build.ts'
import { listenRules } from './channel-rules/listen.ts'
import { sendRules } from './channel-rules/send.ts'
import { webhookRules } from './channel-rules/webhook.ts'
import type { TestHostOverrides } from './host.ts'
import { holdRules, type LeftOut, type Rules } from './rules.ts'

/** A request body as the provider sends it, and the messages in it. */
export interface ChannelFixture {
  readonly name: string
  /** Besides those that prove where it comes from. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly expect: readonly Inbound[]
}

/** What shows that a request comes from the provider. */
export interface Proof {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
}

export interface WebhookSubject {
  /** At least one with a message in it; `loadFixtures` reads them from a folder. */
  readonly fixtures: readonly ChannelFixture[]
  /** The name of the fixture that is a message of our own. */
  readonly own: string
  /** Proves a body as the provider does, at a moment in milliseconds since 1970. */
  prove(body: Uint8Array, atMs: number): Proof
  /** The key in `config` without which nothing is proved. */
  readonly secretKey: string
  /** The query of the provider's GET check: with the right token, and the challenge it brings. */
  readonly handshake?: { readonly query: Readonly<Record<string, string>>; readonly tokenKey: string; readonly challengeKey: string }
}

export interface SendSubject {
  readonly to: Address
  /** What the provider answers when all is well. */
  answer(request: Request): Response | Promise<Response>
  /** The id in that answer. */
  readonly id: string
}

export interface ListenSubject {
  /** What the connection needs of the host; its outside brings the messages of `expect`, then nothing. */
  host(): TestHostOverrides
  readonly expect: readonly Inbound[]
}

export interface ChannelSubject {
  readonly feature: Feature
  /** Of its section, as TOML has it, secrets included. */
  readonly config: object
  /** The key of the allowlist. */
  readonly allowKey: string
  /** The texts in `config` that must never show. */
  readonly secrets: readonly string[]
  readonly webhook?: WebhookSubject
  /** For a channel that sends with `host.fetch`. */
  readonly send?: SendSubject
  readonly listen?: ListenSubject
  readonly except?: readonly LeftOut[]
}

export const channelConformance = (subject: ChannelSubject): void =>
  holdRules(`channel conformance: ${subject.feature.id}`, channelRules(subject), subject.except)

export function channelRules(subject: ChannelSubject): Rules {
  const bench = createBench(subject)
  return {
    ...buildRules(bench),
    ...(subject.webhook ? webhookRules(bench, subject.webhook) : {}),
    ...(subject.send ? sendRules(bench, subject.send) : {}),
    ...(subject.listen ? listenRules(bench, subject.listen) : {}),
  }
}
