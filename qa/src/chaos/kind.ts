/** The interface of one kind of message: how its platform writes and delivers it. */
import type { PostedRequest } from '@sluice/testkit/crash-kind'
import type { FakeProvider, ProviderRequest } from '@sluice/testkit/fake-provider'
import type { Link } from '@sluice/testkit/link'
import type { KindName, Message } from './history.ts'
import type { Posted } from './request.ts'

/** A message before it has an id. */
export type Draft = Omit<Message, 'id' | 'kind'>

/** How the platform of one kind writes and delivers messages. The members that `CrashKind` has too are described there. */
export interface Kind {
  readonly name: KindName
  /** Its part of the configuration, as TOML. */
  readonly config: string
  readonly senders: readonly [string, ...string[]]
  readonly batchMax: number
  readonly isPulled: boolean
  readonly isPrivate?: boolean
  readonly dropsRepeats?: boolean
  isReady?(): boolean
  /** Makes a message, as its sender writes it. */
  write(draft: Draft): Message
  /** One attempt to deliver messages. Throws for an empty list. Absent when messages arrive over a connection of the daemon. */
  request?(messages: readonly Message[]): PostedRequest
  /** What an answer says about the turn of a direct request. Absent where answers name no turn. */
  turnIn?(answer: Pick<Posted, 'body' | 'turn'>): { readonly turn: string; readonly text?: string } | undefined
  /** The code with which the turn of a direct request failed, if the answer says that it did. Its key is free again. */
  failureIn?(answer: Pick<Posted, 'body' | 'status'>): string | undefined
  /** Whether an answer only says that an earlier request is being processed, which acknowledges nothing. */
  isInFlight?(answer: Pick<Posted, 'body'>): boolean
  /** Absent for a kind without replies. */
  readonly provider?: FakeProvider
  textIn?(request: ProviderRequest): string
  delivered(): readonly string[]
  /** The network between its platform and the daemon. Absent unless the run cuts it. */
  readonly link?: Link
}
