/** A way messages come in, as its provider does it: what a run needs of each. */
import type { FakeProvider, ProviderRequest } from '@sluice/testkit/fake-provider'
import type { KindName, Message } from './history.ts'

export interface PostedRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a message is to be before it has an id. */
export type Draft = Omit<Message, 'id' | 'kind'>

export interface Kind {
  readonly name: KindName
  /** Of the configuration; TOML. */
  readonly config: string
  readonly senders: readonly [string, ...string[]]
  /** The most messages of one request. */
  readonly batchMax: number
  /** Its messages are fetched: a request only says that there are some, and their provider keeps them. */
  readonly isPulled: boolean
  /** Each sender has a conversation of their own, where a keyword alone answers the one question that waits. Absent: no. */
  readonly isPrivate?: boolean
  /** False: what is written now, before the first daemon has found its way there, is never brought. Absent: always true. */
  isReady?(): boolean
  /** Somebody writes. */
  write(draft: Draft): Message
  /** One attempt to bring messages; proved anew each time. */
  request(messages: readonly Message[]): PostedRequest
  readonly provider?: FakeProvider
  /** What a request to the provider says, where its body does not show it. */
  textIn?(request: ProviderRequest): string
  /** The texts the provider took. */
  delivered(): readonly string[]
}
