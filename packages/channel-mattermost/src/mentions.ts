/** Mentions in messages: mentions of the bot in texts of people, and mentions that a text of a model must not cause. */

const NAME = /@([a-z0-9._-]+)/gi
const WORD = /[a-z0-9_]/i
/** Mattermost takes these characters as the end of a sentence if they are behind a name. */
const TRAILING = new Set(['.', '-', '_'])

interface Mention {
  readonly from: number
  readonly to: number
}

/** Returns where a text mentions `username`, without an `@` inside of a word, as in an address. */
function mentionsOf(text: string, username: string): readonly Mention[] {
  const name = username.toLowerCase()
  return [...text.matchAll(NAME)].flatMap((match) => {
    const [whole, found = ''] = match
    const isInWord = match.index > 0 && WORD.test(text[match.index - 1] ?? '')
    const rest = [...found.slice(name.length)]
    const isName = found.slice(0, name.length).toLowerCase() === name && rest.every((character) => TRAILING.has(character))
    return isName && !isInWord && name !== '' ? [{ from: match.index, to: match.index + whole.length - rest.length }] : []
  })
}

export const isMentioned = (text: string, username: string): boolean => mentionsOf(text, username).length > 0

/** Returns the text without the mentions of `username`, and without the punctuation after one that begins the text. */
export function withoutMention(text: string, username: string): string {
  let [rest, from] = ['', 0]
  for (const mention of mentionsOf(text, username)) {
    rest += text.slice(from, mention.from)
    from = mention.to
    if (rest.trim() === '') {
      if (/[:,]/.test(text[from] ?? '')) from += 1
      rest = ''
    } else if (/\s$/.test(rest) && /\s/.test(text[from] ?? '')) from += 1
  }
  return (rest + text.slice(from)).trim()
}

/** Mattermost ends a mention at this invisible character. */
const ZERO_WIDTH_SPACE = '\u200b'
/** Looks like an `@`, and mentions no one. */
const FULLWIDTH_AT = '\uff20'
const EVERYONE = /@(?=(?:all|channel|here)\b)/gi
const ANYONE = /@(?=[a-z0-9])/gi
const FENCE = /^ {0,3}(`{3,}|~{3,}(?!~))([^`]*)$/

/**
 * Returns a text of a model that notifies no one, with at most `max` code points if the text itself has no more. Outside of code blocks
 * no name is a mention. In code blocks only `@all`, `@channel` and `@here` are changed, so that other code stays as it is.
 */
export function withoutNotifications(text: string, max: number): string {
  const changed = neutralised(text, `@${ZERO_WIDTH_SPACE}`)
  return changed.length > max && [...changed].length > max ? neutralised(text, FULLWIDTH_AT) : changed
}

function neutralised(text: string, at: string): string {
  let fence = ''
  const lines = text.split('\n').map((line) => {
    const [, marks = '', info = ''] = FENCE.exec(line) ?? []
    const isCode = fence !== ''
    if (fence === '') fence = marks
    else if (marks.startsWith(fence) && info.trim() === '') fence = ''
    return isCode && fence !== '' ? line.replace(EVERYONE, at) : withoutNames(line, at)
  })
  return lines.join('\n')
}

const withoutNames = (line: string, at: string): string =>
  line.replace(ANYONE, (_at, index: number) => (index > 0 && WORD.test(line[index - 1] ?? '') ? '@' : at))
