/** A channel's parts for the suites of the whole product, which import them as `testing` from the channel's `src/testing/index.ts`. */
import type { Webhook } from '@sluice/sdk'
import type { Chat } from './chat.ts'
import type { CrashKind } from './crash-kind.ts'
import type { FakeProvider } from './fake-provider.ts'
import type { Random } from './random.ts'
import type { SectionValues } from './section-values.ts'
import type { ReferenceBody, SentRequest, Vector } from './vector.ts'
import type { Scheme } from './webhook-fuzz/scheme.ts'

/** A running fake of the platform, and the section that connects the channel to it: secrets set, every sender allowed. */
export interface Connected<Fake = FakeProvider> {
  readonly fake: Fake
  readonly section: SectionValues
}

export interface ChannelTesting<Fake extends FakeProvider = FakeProvider> {
  /** `nowMs` is the clock of the daemon under test. */
  connect(nowMs: () => number): Promise<Connected<Fake>>
  /** For the crash suite: writes messages as people do, and delivers them as the platform does. Required of the channels of a release. */
  crashKind?(): Promise<CrashKind>
  /**
   * For a channel that reads a device of this machine: why no platform sends messages again, and why no network can be cut. Such a
   * channel has no crash kind.
   */
  readonly noPlatform?: string
  /** For a channel whose idle accounts need more memory than 6 MiB each: an account that is as large as the bar in MiB assumes. */
  readonly idle?: {
    readonly mibMax: number
    /** How many accounts can run in one process, where the fakes give all of them one name. Default: any number. */
    readonly accountsMax?: number
    connect(nowMs: () => number): Promise<Connected<Fake>>
  }
  /** For a channel with a webhook. */
  readonly webhook?: WebhookTesting<Fake>
  /** For a channel that is a notification target: the fake as people see it. */
  chat?(nowMs: () => number): Promise<Chat>
}

export interface WebhookTesting<Fake = FakeProvider> {
  /** For the fuzzer: each way to prove the origin of a request, by name. */
  readonly schemes: Readonly<Record<string, (random: Random) => Scheme | Promise<Scheme>>>
  /** Reference requests and their outcome, with the section of `connect`. */
  readonly vectors: readonly Vector<Fake>[]
  /** Returns the webhook of the entry `./webhook`, with the secrets of the vectors and without a Sluice runtime. */
  bare?(): Webhook
  readonly bodies?: readonly ReferenceBody[]
  /** Returns a request with any body and a valid signature. Absent when no signature covers the body. */
  signedRequest?(body: Uint8Array): SentRequest
}
