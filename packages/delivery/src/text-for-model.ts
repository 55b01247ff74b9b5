/** Makes the text of a message for the model: the words of the sender, with the parts framed that nobody vouches for. */
import { type Channel, frameUntrusted, type Inbound } from '@sluice/sdk'
import { isNamed } from './allowed-senders.ts'
import { type MediaOptions, textWithMedia } from './media.ts'

/**
 * Returns the text with its attachments as `textWithMedia` does. The whole text is framed unless the sender is verified and an entry
 * of the allowlist other than `*` covers the sender. Otherwise only quoted text is framed. Rejects as `textWithMedia` does.
 */
export async function textForModel(message: Inbound, options: MediaOptions): Promise<string> {
  const { channel } = options
  const { sender, text, quotedFrom } = message
  if (!isTrusted(channel, message))
    return frameUntrusted(`message from ${sender} on ${channel.name}`, await textWithMedia(message, options))
  if (quotedFrom === undefined || quotedFrom >= text.length) return textWithMedia(message, options)
  const quoted = frameUntrusted(`quote in a message from ${sender} on ${channel.name}`, text.slice(quotedFrom))
  return textWithMedia({ ...message, text: `${text.slice(0, quotedFrom)}${quoted}` }, options)
}

/** Without the secret of its webhook, a channel verifies no request. */
const isTrusted = (channel: Channel, { sender, unverified }: Inbound): boolean =>
  unverified !== true && channel.webhook?.unsigned === undefined && isNamed(channel, sender)
