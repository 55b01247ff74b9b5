/** Addresses of conversations: a person by the user id, a group by `group:` and the id of its conversation. */
import type { Address } from '@sluice/sdk'

const GROUP = 'group:'

export const groupAddress = (conversationId: string): string => GROUP + conversationId

/** Returns the id of the conversation of a group; undefined for the address of a person. */
export const groupIn = ({ to }: Pick<Address, 'to'>): string | undefined => (to.startsWith(GROUP) ? to.slice(GROUP.length) : undefined)

/**
 * Returns what a reply needs besides the conversation. The session accepts replies until its end, and stays with the message, so that a
 * reply after a restart has it and one message never uses the session of another.
 */
export const sessionOf = ({ more = {} }: Address): { readonly session?: string | undefined; readonly untilMs: number } => ({
  session: more.session,
  untilMs: Number(more.untilMs) || 0,
})
