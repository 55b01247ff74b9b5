/** The subject of a channel's conformance suite: the feature, its configuration, fixtures and platform answers. */
import type { Abilities, Address, Channel, Feature, Inbound } from '@sluice/sdk'
import type { FakeProvider } from './fake-provider.ts'
import type { TestHostOverrides } from './host.ts'
import type { LeftOut } from './rules.ts'

/** A recorded request body of the platform and the messages it contains. */
export interface ChannelFixture {
  readonly name: string
  /** The request's headers, except the ones that prove its origin. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly expect: readonly Inbound[]
}

/** The parts of a request that prove that it comes from the platform. */
export interface Proof {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  /** Members of the JSON body, such as `header.token`. */
  readonly body?: Readonly<Record<string, string>>
}

/** The webhook of a channel under test. */
export interface WebhookSubject {
  /** At least one, and at least one of them with a message; `loadFixtures` reads them from a folder. */
  readonly fixtures: readonly ChannelFixture[]
  /** The name of the fixture with a message that the bot itself wrote. */
  readonly own: string
  /** Returns the platform's proof for a body, made at `atMs` milliseconds since 1970. */
  prove(body: Uint8Array, atMs: number): Proof
  /**
   * The other parts of a request that the proof covers. Default: the body and a time. `nothing` is for a platform that sends the same token with every
   * request; the suite then leaves out the rules about changed bodies and stale proofs.
   */
  readonly covers?: 'body' | 'nothing'
  /** The key of the webhook secret in `config`. Without the secret the channel accepts every request. */
  readonly secretKey: string
  /** The query of the platform's GET check with the right token, and which of its keys hold the token and the challenge. */
  readonly handshake?: { readonly query: Readonly<Record<string, string>>; readonly tokenKey: string; readonly challengeKey: string }
}

/** A message to send and the platform's answer to it. */
export interface SendSubject {
  readonly to: Address
  /** Answers as the platform does when it accepts the message. */
  answer(request: Request): Response | Promise<Response>
  /** The message id in that answer. */
  readonly id: string
  /** Answers a request that comes before the message, such as the one for an access token; undefined for the message itself. */
  prior?(request: Request): Response | undefined
}

/** The connection of a channel under test. */
export interface ListenSubject {
  /** Host members that the connection needs. They bring the messages of `expect` and then no others. */
  host(): TestHostOverrides
  readonly expect: readonly Inbound[]
  /** The platform has `fallSilent`: the channel notices silent connections by the clock of its host. */
  readonly canFallSilent?: boolean
  /** Starts a platform whose connections the suite breaks. `nowMs` is its clock. Only a feature outside the catalogue may leave it out. */
  platform?(nowMs: () => number): Promise<ListenPlatform>
}

/** A fake of the platform of a channel that listens. */
export interface ListenPlatform {
  readonly fake: Pick<FakeProvider, 'cut' | 'close'>
  /** The values of the feature's section that connect the channel to the fake. */
  readonly config: object
  /** Members of the host through which the channel reaches the platform, if it does so by other means than the network. */
  readonly host?: TestHostOverrides
  /** Writes a message for the bot. */
  say(text: string): void
  /** Makes the channel look for messages at once, for a channel that polls rarely. */
  poke?(channel: Channel): Promise<void>
  /** Keeps the connections open and sends nothing over them, not even answers to pings. Later connections work. */
  fallSilent?(): void
  /** Makes the credentials of the channel invalid. */
  refuse(): void
}

/** A payload of the platform that holds something a person can send. */
export interface RecordedArrival {
  readonly what: string
  /** The documentation, the SDK or the public thread that shows the payload. */
  readonly source: string
  readonly payload: unknown
  /** Members of the message that arrives. */
  readonly expect: Partial<Inbound>
}

/** Everything a person can send on the platform. */
export interface ArrivalSubject {
  /** Parses a payload as the channel does. */
  parse(payload: unknown): readonly Inbound[] | Promise<readonly Inbound[]>
  readonly recorded: readonly RecordedArrival[]
  /** Payloads of a command from the menu of the platform. */
  readonly menu?: { readonly direct: unknown; readonly room: unknown }
  /** The members of a message that the platform cannot fill, each with the reason. */
  readonly never?: Partial<Readonly<Record<'quoted' | 'forwarded' | 'things', string>>>
}

/** A feature with one channel, and what its suite needs to know about it. */
export interface ChannelSubject {
  readonly feature: Feature
  /** The values of the feature's section as in TOML, secrets included. */
  readonly config: object
  /** The key of the allowlist in `config`. */
  readonly allowKey: string
  /** Secrets in `config` that must never appear in a log or an error. */
  readonly secrets: readonly string[]
  readonly webhook?: WebhookSubject
  /** For a channel that sends through `host.fetch`. */
  readonly send?: SendSubject
  readonly listen?: ListenSubject
  readonly arrivals?: ArrivalSubject
  /** Where the names of senders come from, as the channel declares it. Only a feature outside the catalogue may leave it out. */
  readonly names?: Abilities['names']
  /** Rules this channel does not keep, each with its reason. */
  readonly except?: readonly LeftOut[]
}
