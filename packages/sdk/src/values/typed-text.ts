/** The text in which commands and answers to approvals are recognised. */
import type { Inbound } from '../channel/channel.ts'

/** Returns what the sender typed: the whole text, unless the channel tells its typed part apart. */
export const typedText = ({ typed, text }: Pick<Inbound, 'typed' | 'text'>): string => typed ?? text
