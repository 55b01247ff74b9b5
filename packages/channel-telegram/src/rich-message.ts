/** Reads the words of a rich message, which bots write and people forward: https://core.telegram.org/bots/api#richmessage */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { location, type Thing, unknownThing } from '@sluice/sdk'

/** Telegram allows 16 levels of blocks, and a list is two of these levels. */
const DEPTH_MAX = 40
const BLOCKS_MAX = 1000
const QUOTES: readonly string[] = ['blockquote', 'pullquote']

/** The types whose content arrives as words, files or a location; the last ones have none. */
const KNOWN_TYPES: ReadonlySet<string> = new Set([
  ...[
    'paragraph',
    'heading',
    'pre',
    'footer',
    'mathematical_expression',
    'list',
    'blockquote',
    'pullquote',
    'table',
    'details',
    'thinking',
  ],
  ...['collage', 'slideshow', 'map', 'animation', 'audio', 'photo', 'video', 'voice_note'],
  ...['divider', 'anchor'],
])

/** Returns the places of maps, and a line for each block of a later type; for a message without blocks, one that says so. */
export function thingsOfBlocks(message: unknown): readonly Thing[] {
  const blocks = blocksIn(message)
  if (blocks.length === 0) return [unknownThing('rich_message')]
  return blocks.flatMap(({ type, location: at }) => {
    const { latitude, longitude } = members(at)
    if (type === 'map') return [location(latitude, longitude)]
    return text(type) === '' || KNOWN_TYPES.has(text(type)) ? [] : [unknownThing(text(type))]
  })
}

/** Returns the words, one line for each block, with a mark before each line of a quote: the words in it are those of others. */
export const richText = (message: unknown): string =>
  placedBlocks(message)
    .map(({ block, isQuoted }) => (isQuoted ? marked(linesOf(block)) : linesOf(block)))
    .filter((line) => line.trim() !== '')
    .join('\n')

const marked = (lines: string): string => (lines.trim() === '' ? '' : lines.replace(/^/gm, '> '))

interface PlacedBlock {
  readonly block: Members
  /** Whether it is a quote, or inside of one. */
  readonly isQuoted: boolean
}

/** Returns the blocks in their order, with those inside of other blocks and the items of lists behind the block around them. */
export const blocksIn = (message: unknown): readonly Members[] => placedBlocks(message).map(({ block }) => block)

function placedBlocks(message: unknown): readonly PlacedBlock[] {
  const found: PlacedBlock[] = []
  const visit = (value: unknown, depth: number, isInQuote: boolean): void => {
    for (const block of list(value).map(members)) {
      if (found.length >= BLOCKS_MAX || depth > DEPTH_MAX) return
      const isQuoted = isInQuote || QUOTES.includes(text(block.type))
      found.push({ block, isQuoted })
      visit(block.items, depth + 1, isQuoted)
      visit(block.blocks, depth + 1, isQuoted)
    }
  }
  visit(members(message).blocks, 0, false)
  return found
}

/** Returns the words of a block without the words of the blocks inside of it. */
function linesOf({ label, summary, text: said, expression, cells, caption, credit }: Members): string {
  const rows = list(cells).map((row) =>
    list(row)
      .map((cell) => words(cell))
      .join(' | '),
  )
  const parts = [
    words(label),
    words(summary),
    words(said),
    text(expression),
    ...rows,
    words(caption),
    words(members(caption).credit),
    words(credit),
  ]
  return parts.filter((part) => part.trim() !== '').join('\n')
}

/** Reads a rich text: a text, a list of rich texts, or an object with a rich text and its style. */
function words(rich: unknown, depth = 0): string {
  if (typeof rich === 'string') return rich
  if (depth > DEPTH_MAX) return ''
  if (Array.isArray(rich)) return rich.map((each) => words(each, depth + 1)).join('')
  const { text: said, url, expression, alternative_text } = members(rich)
  const inner = words(said, depth + 1) || text(expression) || text(alternative_text)
  return text(url) === '' || url === inner ? inner : `${inner} (${text(url)})`
}
