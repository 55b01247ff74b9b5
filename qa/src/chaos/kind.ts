/** The interface of one kind of message: how its platform writes and delivers it. Each kind of a run implements it. */
import type { FakeProvider, ProviderRequest } from '@sluice/testkit/fake-provider'
import type { KindName, Message } from './history.ts'

export interface PostedRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A message before it has an id. */
export type Draft = Omit<Message, 'id' | 'kind'>

export interface Kind {
  readonly name: KindName
  /** Its part of the configuration, as TOML. */
  readonly config: string
  readonly senders: readonly [string, ...string[]]
  /** The most messages of one request. */
  readonly batchMax: number
  /** The daemon fetches its messages: a request only announces them, and the platform keeps them. */
  readonly isPulled: boolean
  /** Each sender has a conversation of their own, in which a keyword alone answers the only open question. Default: false. */
  readonly isPrivate?: boolean
  /** False until the daemon has connected for the first time: messages written before are never delivered. Absent: always true. */
  isReady?(): boolean
  /** Makes a message, as its sender writes it. */
  write(draft: Draft): Message
  /** One attempt to deliver messages, with a signature of its own. */
  request(messages: readonly Message[]): PostedRequest
  readonly provider?: FakeProvider
  /** The text in a request to the platform, if it is not in the body as it is. */
  textIn?(request: ProviderRequest): string
  /** The texts that the platform accepted. */
  delivered(): readonly string[]
}
