/** What happened in the play of held work, for its judges. */
import type { HeldMessage } from './messages.ts'

/** A request to a platform that sends a message. */
export interface HeldSend {
  readonly channel: string
  readonly body: string
  /** The number of the life in which it came. */
  readonly life: number
}

export interface HeldRecord {
  readonly messages: readonly HeldMessage[]
  /** The events that were accepted, by mark. */
  readonly events: ReadonlyMap<string, string>
  /** One name for each effect of a step. */
  readonly effects: readonly string[]
  readonly sends: readonly HeldSend[]
  /** The texts that each platform has, in order, with their conversations. */
  readonly delivered: readonly { readonly channel: string; readonly chat: string; readonly text: string }[]
}
