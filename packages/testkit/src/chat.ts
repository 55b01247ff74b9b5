/** The common view of the chat platforms' fakes: tests write and press buttons as people and read the bot's messages. */
import type { ProviderFault, ProviderRequest } from './fake-provider.ts'

/** A place in a chat. */
export interface Spot {
  /** The id of the conversation. */
  readonly place: string
  readonly thread?: string
  readonly replyTo?: string
}

/** A message of the bot. */
export interface Shown extends Spot {
  readonly id: string
  readonly text: string
  /** The values of its buttons. */
  readonly buttons: readonly string[]
  readonly files: readonly { readonly name: string; readonly text: string }[]
  readonly isEdited: boolean
}

/** A message that a person writes. */
export interface Said extends Partial<Spot> {
  readonly text: string
  /** Default: `ada`. */
  readonly from?: string
}

/** A button press of a person. */
export interface Press {
  readonly message: string
  readonly value: string
  readonly from?: string
}

/** A chat platform with people, the bot, and faults to inject. */
export interface Chat {
  /** The channel's name. */
  readonly name: string
  /** Where an answer to a message of `places.talk` appears: in a thread on the message, or as a reply that quotes it. */
  readonly answersIn: 'thread' | 'quote'
  /** The ids of two allowed users and, as `eve`, one who is not allowed. */
  readonly people: { readonly ada: string; readonly bob: string; readonly eve: string }
  /** The conversation where people talk to the bot, the one for notifications, and a third one. */
  readonly places: { readonly talk: string; readonly notify: string; readonly other: string }
  /** The values of the channel's section. */
  readonly config: Readonly<Record<string, string | readonly string[]>>
  /** Whether new messages reach the daemon over its connection. */
  readonly isConnected: boolean
  /** Writes a message as a person, by default in `places.talk`. Returns the message's id. */
  say(said: Said): string
  /** Presses a button as a person's client does, even if the message has no such button. */
  press(press: Press): void
  /** The bot's messages in their current form, oldest first. */
  sent(): readonly Shown[]
  /** The place where a person would reply to this message: the thread opened on it, or the message's own place. */
  threadOf(message: Shown): Spot
  /** Breaks the connection. */
  drop(): void
  /** Makes the next requests that post a message meet the fault. */
  failSend(fault: ProviderFault, times?: number): void
  /** Makes the next requests that edit a message meet the fault. */
  failEdit(fault: ProviderFault, times?: number): void
  readonly requests: readonly ProviderRequest[]
  /** The texts of the previews of replies that the platform shows now, which are no messages. Absent where it has none. */
  readonly previews?: readonly string[]
  /** How often the bot showed its typing indicator. */
  readonly typing: number
  close(): Promise<void>
}
