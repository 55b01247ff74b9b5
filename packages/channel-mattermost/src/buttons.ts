/**
 * Buttons as reactions: the bot adds an emoji for each button, and a person presses the button by adding the same one. Mattermost's own
 * buttons call a URL of the integration, and Sluice needs no address that the server can reach.
 */
import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Button } from '@sluice/sdk'

const EMOJIS = {
  good: ['white_check_mark', 'ballot_box_with_check', 'heavy_check_mark'],
  bad: ['x', 'no_entry_sign', 'octagonal_sign'],
} as const
const ALL: ReadonlySet<string> = new Set([...EMOJIS.good, ...EMOJIS.bad])

/** The member of a post's `props` with the value of each emoji's button. */
const PROP = 'sluice_buttons'

export interface ReactionButton {
  readonly emoji: string
  readonly label: string
  readonly value: string
}

export const isButtonEmoji = (name: string): boolean => ALL.has(name)

/** Returns the buttons with an emoji each; further ones than there are emojis are left out. */
export function reactionButtons(buttons: readonly Button[] = []): readonly ReactionButton[] {
  const left = { good: [...EMOJIS.good], bad: [...EMOJIS.bad] }
  return buttons.flatMap(({ label, value, tone }) => {
    const emoji = left[tone].shift()
    return emoji === undefined ? [] : [{ emoji, label, value }]
  })
}

/** The line that tells people how to press the buttons. */
export const legend = (buttons: readonly ReactionButton[]): string => buttons.map(({ emoji, label }) => `:${emoji}: ${label}`).join('   ')

export const buttonProps = (buttons: readonly ReactionButton[]): object =>
  buttons.length === 0 ? {} : { [PROP]: Object.fromEntries(buttons.map(({ emoji, value }) => [emoji, value])) }

/** Returns the value of the button of a post that an emoji presses; empty without one. */
export const pressedValue = (post: Members, emoji: string): string => text(members(members(post.props)[PROP])[emoji])

export const hasButtons = (post: Members): boolean => members(post.props)[PROP] !== undefined
