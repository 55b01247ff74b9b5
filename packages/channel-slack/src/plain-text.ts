/** What people wrote, without Slack's markup for mentions and links. `&`, `<` and `>` of their own come escaped. */

const TOKEN = /<([^<>]*)>/g

/** `bot`: the user id of ours, whose mentions are taken out. */
export function plainText(marked: string, bot: string): string {
  const addressed = marked.replaceAll(new RegExp(`<@${bot}(?:\\|[^<>]*)?>[:,]?\\s?`, 'g'), '')
  return unescaped(addressed.replaceAll(TOKEN, (_token, inside: string) => tokenText(inside))).trim()
}

export const mentions = (marked: string, bot: string): boolean => marked.includes(`<@${bot}>`) || marked.includes(`<@${bot}|`)

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
