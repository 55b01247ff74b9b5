/**
 * The JSON of messages that the bot posts and edits. `allowed_mentions` keeps the text of a model from notifying people or
 * roles.
 */
import { type Address, AppError, type Attachment, type Button, type Outbound, sha256Hex } from '@sluice/sdk'

/** Limits of one message: text in code points, number of files, and bytes of each file. */
export const LIMITS = { text: 2000, files: 10, fileBytes: 8 * 1024 * 1024 } as const

const NONCE_CHARS_MAX = 25
const LABEL_CHARS_MAX = 80
const BUTTONS_IN_ROW = 5
const ROWS_MAX = 5
const ACTION_ROW = 1
const BUTTON = 2
const STYLES = { good: 3, bad: 4 } as const

const NO_PINGS = { allowed_mentions: { parse: [] } } as const

/** The nonce makes a repeat safe: within a few minutes the platform answers it with the message that exists. */
export const newMessage = ({ replyTo }: Address, { text, buttons = [], clientId }: Outbound) => ({
  content: text,
  ...NO_PINGS,
  ...(replyTo !== undefined && { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
  ...(buttons.length > 0 && { components: rows(buttons) }),
  nonce: sha256Hex(clientId).slice(0, NONCE_CHARS_MAX),
  enforce_nonce: true,
})

export const changedMessage = ({ text, buttons = [] }: Outbound) => ({ content: text, ...NO_PINGS, components: rows(buttons) })

/** Returns the message itself, or a form with its attachments. Throws `invalid_request` for an attachment without bytes. */
export function withFiles(message: ReturnType<typeof newMessage>, attachments: readonly Attachment[] = []): object {
  if (attachments.length === 0) return message
  const form = new FormData()
  const named = attachments.map(({ name }, id) => ({ id, filename: name }))
  form.append('payload_json', JSON.stringify({ ...message, attachments: named }))
  for (const [index, { name, mime, source }] of attachments.entries()) {
    if (!('bytes' in source)) throw new AppError('invalid_request', `The attachment ${JSON.stringify(name)} has no bytes`)
    const file = new Blob([new Uint8Array(source.bytes)], { type: mime ?? 'application/octet-stream' })
    form.append(`files[${index}]`, file, name)
  }
  return form
}

function rows(buttons: readonly Button[]): object[] {
  const shown = buttons.slice(0, BUTTONS_IN_ROW * ROWS_MAX).map(({ label, value, tone }) => ({
    type: BUTTON,
    style: STYLES[tone],
    label: Array.from(label).slice(0, LABEL_CHARS_MAX).join(''),
    custom_id: value,
  }))
  return Array.from({ length: Math.ceil(shown.length / BUTTONS_IN_ROW) }, (_, row) => ({
    type: ACTION_ROW,
    components: shown.slice(row * BUTTONS_IN_ROW, (row + 1) * BUTTONS_IN_ROW),
  }))
}
