/** Makes the text of a message for the model: the words of the sender, with the parts framed that nobody vouches for. */
import { frameSource, frameUntrusted, type Inbound, isAtLeast, type Standing } from '@sluice/sdk'
import { type MediaOptions, textWithMedia } from './media.ts'

/** Returns the source of the text of a sender whom nobody vouches for, as its frame names it. */
export const sourceOfMessage = (channel: string, sender: string): string => frameSource(`message from ${sender} on ${channel}`)

export interface TextOptions extends MediaOptions {
  /** The standing of the sender. */
  readonly standing: Standing
}

/**
 * Returns the text with its attachments as `textWithMedia` does. The whole text is framed unless the sender is verified and an entry
 * of the allowlist other than `*` covers the sender. Otherwise only quoted text is framed. Rejects as `textWithMedia` does.
 */
export async function textForModel(message: Inbound, { standing, ...options }: TextOptions): Promise<string> {
  const { channel } = options
  const { sender, text, quotedFrom } = message
  if (!isAtLeast(standing, 'listed')) return frameUntrusted(sourceOfMessage(channel.name, sender), await textWithMedia(message, options))
  if (quotedFrom === undefined || quotedFrom >= text.length) return textWithMedia(message, options)
  const quoted = frameUntrusted(`quote in a message from ${sender} on ${channel.name}`, text.slice(quotedFrom))
  return textWithMedia({ ...message, text: `${text.slice(0, quotedFrom)}${quoted}` }, options)
}
