/** The text and blocks of a message that the bot posts or edits. */
import type { Button, Outbound } from '@sluice/sdk'

/** Counted after escaping. Slack refuses an edit with a longer text. */
const TEXT_CHARS_MAX = 4000
const SECTION_CHARS_MAX = 3000
const LABEL_CHARS_MAX = 75

export interface Content {
  /** Slack shows it only in notifications when there are blocks. */
  readonly text: string
  readonly blocks: readonly object[]
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Escapes Slack's markup, so that no text of a model mentions a person, a group or everyone. */
export const escapeText = (plain: string): string => plain.replaceAll(/[&<>]/g, (character) => ESCAPES[character] ?? character)

/** Returns plain text where possible, and blocks for a message with buttons or a text that is too long for an edit. */
export function contentOf({ text, buttons = [] }: { readonly text: string; readonly buttons?: Outbound['buttons'] }): Content {
  const escaped = escapeText(text)
  if (buttons.length === 0 && escaped.length <= TEXT_CHARS_MAX) return { text: escaped, blocks: [] }
  const parts = splitEscaped(text, SECTION_CHARS_MAX)
  // `verbatim` keeps Slack from turning words into mentions.
  const sections = parts.map((part) => ({ type: 'section', text: { type: 'mrkdwn', text: part, verbatim: true } }))
  const actions = buttons.length === 0 ? [] : [{ type: 'actions', elements: buttons.map(buttonElement) }]
  return { text: splitEscaped(text, TEXT_CHARS_MAX)[0] ?? '', blocks: [...sections, ...actions] }
}

const buttonElement = ({ label, value, tone }: Button, index: number): object => ({
  type: 'button',
  action_id: `press-${index}`,
  text: { type: 'plain_text', text: label.slice(0, LABEL_CHARS_MAX) },
  value,
  style: tone === 'good' ? 'primary' : 'danger',
})

/**
 * Returns the escaped text in parts of at most `max` characters. Cuts at white space where possible, and never inside a
 * character or an escape.
 */
export function splitEscaped(text: string, max: number): readonly string[] {
  const parts: string[] = []
  let [part, cut] = ['', 0]
  for (const character of text) {
    const escaped = escapeText(character)
    if (part.length + escaped.length > max) {
      const at = cut > max / 2 ? cut : part.length
      parts.push(part.slice(0, at))
      part = part.slice(at)
      cut = 0
    }
    part += escaped
    if (/\s/.test(character)) cut = part.length
  }
  return [...parts, part].filter((each) => each.trim() !== '')
}
