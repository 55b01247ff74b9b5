/** The content of the bot's messages: a card with Markdown and buttons, or plain text where no card is possible. */
import type { Button, Outbound } from '@sluice/sdk'

/** The type of a message and its content as JSON. */
export interface Payload {
  readonly msg_type: 'interactive' | 'text' | 'image' | 'file' | 'audio' | 'media'
  readonly content: string
}

/** The platform refuses a larger request with a card. */
const CARD_BYTES_MAX = 30_000
/** The parts of a request other than the content. */
const ENVELOPE_BYTES = 500
/** A picture in Markdown, which a card shows only for files of the platform: any other address would make it refuse the card. */
const PICTURE = /!\[([^[\]\n]*)\]\(/g
/** A tag that mentions a person or everyone. An invisible character keeps it from being one. */
const MENTION = /<(?=\/?(?:at|person)\b)/gi

const harmless = (text: string): string => text.replace(MENTION, '<\u200B')

/** Returns the card of a message; undefined if it would be too large. `thread` is returned with a pressed button. */
export function cardOf({ text, buttons = [] }: Pick<Outbound, 'text' | 'buttons'>, thread?: string): Payload | undefined {
  const markdown = { tag: 'markdown', content: harmless(text).replace(PICTURE, '[$1](') }
  const elements = [...(text === '' ? [] : [markdown]), ...(buttons.length === 0 ? [] : [buttonRow(buttons, thread)])]
  const card = { schema: '2.0', config: { update_multi: true }, body: { elements } }
  const payload: Payload = { msg_type: 'interactive', content: JSON.stringify(card) }
  return Buffer.byteLength(JSON.stringify(payload)) + ENVELOPE_BYTES > CARD_BYTES_MAX ? undefined : payload
}

/** A text message may have 150 KB. It has no buttons. */
export const textOf = ({ text, plain = text }: Pick<Outbound, 'text' | 'plain'>): Payload => ({
  msg_type: 'text',
  content: JSON.stringify({ text: harmless(plain) }),
})

const buttonRow = (buttons: readonly Button[], thread: string | undefined): object => ({
  tag: 'column_set',
  columns: buttons.map(({ label, value, tone }) => ({
    tag: 'column',
    width: 'auto',
    elements: [
      {
        tag: 'button',
        text: { tag: 'plain_text', content: label },
        type: tone === 'good' ? 'primary' : 'danger',
        behaviors: [{ type: 'callback', value: { value, ...(thread !== undefined && { thread }) } }],
      },
    ],
  })),
})
