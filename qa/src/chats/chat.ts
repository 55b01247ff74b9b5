/** One chat platform as the tests of all of them see it: people write and press, and what stands there can be read. */
import type { ProviderFault, ProviderRequest } from '@sluice/testkit/fake-provider'

/** Where something is said; absent parts: nowhere in particular. */
export interface Spot {
  /** The conversation. */
  readonly place: string
  readonly thread?: string
  readonly replyTo?: string
}

/** A message of the bot's. */
export interface Shown extends Spot {
  readonly id: string
  readonly text: string
  /** The values of its buttons. */
  readonly buttons: readonly string[]
  readonly files: readonly { readonly name: string; readonly text: string }[]
  readonly isEdited: boolean
}

export interface Said extends Partial<Spot> {
  readonly text: string
  /** Default: `ada`. */
  readonly from?: string
}

export interface Press {
  readonly message: string
  readonly value: string
  readonly from?: string
}

export interface Chat {
  readonly name: 'telegram' | 'discord' | 'slack'
  /** The dispatch target it stands for. */
  readonly target: 'messenger' | 'community' | 'workspace'
  /** Two who may write, and one who may not. */
  readonly people: { readonly ada: string; readonly bob: string; readonly eve: string }
  /** Where people talk with the bot, where notifications go, and a third conversation. */
  readonly places: { readonly talk: string; readonly notify: string; readonly other: string }
  /** Of its section. */
  readonly config: Readonly<Record<string, string | readonly string[]>>
  /** True once what is said now arrives over the connection. */
  readonly isConnected: boolean
  /** Somebody writes, by default where people talk; the message's id. */
  say(said: Said): string
  /** Somebody's program says that a button was pressed, whether there is one or not. */
  press(press: Press): void
  /** What the bot has written, oldest first, as it stands there now. */
  sent(): readonly Shown[]
  /** Where somebody would write to answer this message: the thread that was opened on it, or where it stands. */
  threadOf(message: Shown): Spot
  /** The connection breaks. */
  drop(): void
  /** The next requests that bring a new message meet the fault. */
  failSend(fault: ProviderFault, times?: number): void
  /** The next edits do. */
  failEdit(fault: ProviderFault, times?: number): void
  readonly requests: readonly ProviderRequest[]
  /** How often the bot was shown as typing. */
  readonly typing: number
  close(): Promise<void>
}
