/** Validates the blocks of a message. It knows only the block types that the channel uses. */

type Block = Readonly<Record<string, unknown>>

const BLOCKS_MAX = 50
const SECTION_CHARS_MAX = 3000
const ELEMENTS_MAX = 25
const LABEL_CHARS_MAX = 75
const VALUE_CHARS_MAX = 2000
const STYLES = [undefined, 'primary', 'danger']

/** Returns a problem for each invalid part of the blocks; empty if they are valid. */
export function problemsOf(blocks: unknown): readonly string[] {
  if (!Array.isArray(blocks) || blocks.length > BLOCKS_MAX) return [`must be a list of at most ${BLOCKS_MAX} blocks`]
  return blocks.flatMap((value: unknown, index) => problems(of(value)).map((problem) => `${problem} [json-pointer:/blocks/${index}]`))
}

/** Returns the elements of all `actions` blocks. */
export const elementsOf = (blocks: readonly unknown[]): readonly Block[] =>
  blocks.map(of).flatMap(({ type, elements }) => (type === 'actions' && Array.isArray(elements) ? elements.map(of) : []))

function problems(block: Block): string[] {
  if (block.type === 'section') return sectionProblems(of(block.text))
  if (block.type === 'rich_text') return richTextProblems(block)
  if (block.type !== 'actions') return [`unsupported type: ${String(block.type)}`]
  const elements = elementsOf([block])
  const ids = elements.map(({ action_id }) => action_id)
  return [
    ...(elements.length === 0 || elements.length > ELEMENTS_MAX ? ['must have 1 to 25 elements'] : []),
    ...(new Set(ids).size < ids.length ? ['action_id must be unique'] : []),
    ...elements.flatMap(buttonProblems),
  ]
}

function sectionProblems({ type, text }: Block): string[] {
  if (type !== 'mrkdwn' && type !== 'plain_text') return ['text must be an object']
  const length = typeof text === 'string' ? text.length : 0
  return length === 0 || length > SECTION_CHARS_MAX ? [`text must have 1 to ${SECTION_CHARS_MAX} characters`] : []
}

const CONTAINERS = ['rich_text_section', 'rich_text_preformatted', 'rich_text_quote']

function richTextProblems({ elements }: Block): string[] {
  const containers = Array.isArray(elements) ? elements.map(of) : []
  const parts = containers.flatMap((container) => (Array.isArray(container.elements) ? container.elements.map(of) : []))
  return [
    ...(containers.length > 0 && parts.length > 0 ? [] : ['must have elements']),
    ...(containers.every(({ type }) => CONTAINERS.includes(String(type))) ? [] : ['unsupported element']),
    ...(parts.every(({ type, text, url }) => text !== '' && (type === 'text' || (type === 'link' && typeof url === 'string')))
      ? []
      : ['invalid element']),
  ]
}

function buttonProblems({ type, text, value, style, action_id }: Block): string[] {
  const label = of(text)
  return [
    ...(type === 'button' ? [] : ['unsupported element']),
    ...(typeof action_id === 'string' && action_id !== '' ? [] : ['missing action_id']),
    ...(label.type === 'plain_text' && String(label.text ?? '').length <= LABEL_CHARS_MAX ? [] : ['text must be plain_text']),
    ...(typeof value === 'string' && value.length <= VALUE_CHARS_MAX ? [] : ['value must be a text']),
    ...(STYLES.includes(style as string | undefined) ? [] : ['invalid style']),
  ]
}

const of = (value: unknown): Block => (typeof value === 'object' && value !== null ? (value as Block) : {})
