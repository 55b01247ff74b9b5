/** Renders the Markdown of a reply for its platform, and splits it into messages of the platform's length. */
import { splitText } from '@sluice/kit'
import type { Channel, TextStyle } from '@sluice/sdk'

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
  const [{ renderMarkdown }, { splitStyled }] = await Promise.all([import('@sluice/kit/markdown'), import('@sluice/kit/markup')])
  return (text, { limits }) => splitStyled(renderMarkdown(text, markup), limits, markup.write)
}
