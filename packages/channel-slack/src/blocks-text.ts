/** Reads the words of Slack's blocks, in Slack's markup, for messages whose text is only there. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'

const ELEMENTS_MAX = 2000
const DEPTH_MAX = 8
/** Blocks that only arrange others. */
const WITHOUT_WORDS = ['divider', '']

/** Returns the words, escaped and with mentions as in the text of a message. */
export const blocksText = (blocks: unknown): string => {
  const budget = { elements: ELEMENTS_MAX }
  const lines = list(blocks).map((block) => wordsIn(members(block), budget, 0))
  return lines.filter((line) => line.trim() !== '').join('\n')
}

/** Returns the types of blocks without words. */
export const unknownBlocks = (blocks: unknown): readonly string[] =>
  [...new Set(list(blocks).map((block) => text(members(block).type)))].filter((type) => !WITHOUT_WORDS.includes(type)).slice(0, DEPTH_MAX)

const escaped = (plain: string): string => plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

function wordsIn(block: Members, budget: { elements: number }, depth: number): string {
  if (budget.elements <= 0 || depth > DEPTH_MAX) return ''
  budget.elements -= 1
  const inner = (value: unknown, separator: string): string =>
    list(value)
      .map((each) => wordsIn(members(each), budget, depth + 1))
      .filter((part) => part !== '')
      .join(separator)
  switch (block.type) {
    case 'text':
      return escaped(text(block.text))
    case 'mrkdwn':
      return text(block.text)
    case 'plain_text':
    case 'raw_text':
      return escaped(text(block.text))
    case 'link':
      return `<${text(block.url)}${text(block.text) === '' ? '' : `|${escaped(text(block.text))}`}>`
    case 'user':
      return `<@${text(block.user_id)}>`
    case 'channel':
      return `<#${text(block.channel_id)}>`
    case 'broadcast':
      return `<!${text(block.range)}>`
    case 'usergroup':
      return `<!subteam^${text(block.usergroup_id)}>`
    case 'date':
      return escaped(text(block.fallback))
    case 'markdown':
      return escaped(text(block.text))
    case 'table':
      return list(block.rows)
        .map((row) => inner(row, ' | '))
        .join('\n')
    case 'video':
      return [wordsIn(members(block.title), budget, depth + 1), wordsIn(members(block.description), budget, depth + 1)].join('\n').trim()
    case 'emoji':
      return `:${text(block.name)}:`
    case 'image':
      return escaped(text(block.alt_text))
    case 'rich_text_section':
    case 'rich_text_preformatted':
    case 'rich_text_quote':
      return inner(block.elements, '')
    case 'section':
      return [wordsIn(members(block.text), budget, depth + 1), inner(block.fields, '\n')].filter((part) => part !== '').join('\n')
    case 'header':
      return wordsIn(members(block.text), budget, depth + 1)
    default:
      return inner(block.elements, '\n')
  }
}
