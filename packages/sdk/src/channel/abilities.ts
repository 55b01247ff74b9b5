/** The declaration of a channel for its documentation. */
import type { ThingKind } from './inbound-parts.ts'

export interface Abilities {
  /** The name by which people know the platform. */
  readonly platform: string
  /** The members of messages, in addition to text, and the kinds of content that arrive as a line. */
  readonly arrives: readonly ('files' | 'quotes' | 'forwards' | 'albums' | 'edits' | 'deletions' | ThingKind)[]
  /**
   * Where `Inbound.name` comes from: from the payload of each message, from a look-up whose answer is kept, or from nowhere, where the
   * platform tells bots no names.
   */
  readonly names: 'payload' | 'lookup' | 'none'
  /**
   * The methods of the channel, in addition to sending text: `edits` of its own messages, `reactions` to messages of people, and
   * `commands` in the menu of the platform.
   */
  readonly sends: readonly ('files' | 'edits' | 'typing' | 'reactions' | 'commands')[]
  /** The messages that the platform keeps for a bot that was away, in a few words. */
  readonly keeps: string
}
