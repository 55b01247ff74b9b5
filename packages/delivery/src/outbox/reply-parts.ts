/** Renders the Markdown of a reply for its platform, and splits it into messages of the platform's length. */
import { measure, splitText } from '@sluice/kit'
import type { Channel, Outbound, TextStyle } from '@sluice/sdk'

export interface ReplyPart {
  readonly text: string
  /** Absent where the channel receives the Markdown of the agent. */
  readonly styles?: readonly TextStyle[]
}

/** Returns the messages that show a text, none of them blank. */
export type ReplyParts = (text: string, channel: Channel) => readonly ReplyPart[]

/** Loads the reader of Markdown, which takes part in no turn of a channel that needs none. */
export async function loadReplyParts({ markup }: Channel): Promise<ReplyParts> {
  if (!markup) return (text, { limits }) => splitText(text, limits).map((part) => ({ text: part }))
  const [{ renderMarkdown }, { splitStyled }] = await Promise.all([import('@sluice/kit/markdown'), import('@sluice/kit/styled-text')])
  return (text, { limits }) => splitStyled(renderMarkdown(text, markup), limits, markup.write)
}

/** Returns what the channel receives of a part. A text whose marks leave it no room goes without them. */
export function asOutbound({ text, styles }: ReplyPart, { limits, markup }: Channel): Pick<Outbound, 'text' | 'styles' | 'plain'> {
  if (!styles || !markup) return { text }
  if (!markup.write) return { text, styles }
  const written = markup.write({ text, styles })
  return measure(written, limits.unit) <= limits.text ? { text: written, plain: text } : { text }
}
