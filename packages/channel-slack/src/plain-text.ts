/**
 * Replaces Slack's markup for mentions and links in a message by plain text. Slack escapes the `&`, `<` and `>` that users
 * type.
 */

const TOKEN = /<([^<>]*)>/g

/** Returns the text as its readers see it, without mentions of the bot. `botId` is the user id of the bot. */
export function plainText(marked: string, botId: string): string {
  const withoutMention = marked.replaceAll(new RegExp(`<@${botId}(?:\\|[^<>]*)?>[:,]?\\s?`, 'g'), '')
  return unescaped(withoutMention.replaceAll(TOKEN, (_token, inside: string) => tokenText(inside))).trim()
}

export const mentions = (marked: string, botId: string): boolean => marked.includes(`<@${botId}>`) || marked.includes(`<@${botId}|`)

function tokenText(inside: string): string {
  const bar = inside.indexOf('|')
  const target = bar < 0 ? inside : inside.slice(0, bar)
  const label = bar < 0 ? '' : inside.slice(bar + 1)
  if (target.startsWith('@')) return label ? `@${label.replace(/^@/, '')}` : target
  if (target.startsWith('#')) return label ? `#${label}` : target
  if (target.startsWith('!')) return label || `@${target.slice(1)}`
  const shown = target.replace(/^mailto:|^tel:/, '')
  return label === '' || label === shown || label === target ? shown : `${label} (${target})`
}

const unescaped = (text: string): string => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
