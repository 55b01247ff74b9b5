/** The library's snapshot of a page, made shorter: one line an element, each with the @ref it is named by. */

/** Roles of what one can do something with. */
const INTERACTIVE =
  /^- '?(?:button|checkbox|combobox|link|listbox|menuitem|menuitemcheckbox|menuitemradio|option|radio|searchbox|slider|spinbutton|switch|tab|textbox|treeitem|iframe)\b/
/** Only holds others: no name, no text, no role of its own. */
const HOLDER = /^- '?generic(?: \[(?:ref=[^\]]*|active)\])*'?:$/
const URL_LINE = /^- \/url: /

export interface SnapshotShape {
  readonly interactive_only: boolean
  readonly compact: boolean
}

interface Line {
  readonly indent: number
  readonly text: string
}

export function shapeSnapshot(snapshot: string, { interactive_only, compact }: SnapshotShape): string {
  const lines = snapshot.split('\n').map((line) => ({ indent: line.search(/\S|$/), text: line.trim() }))
  const shaped = interactive_only ? interactive(lines) : compact ? withoutHolders(lines) : lines
  return shaped.map(({ indent, text }) => `${' '.repeat(indent)}${text.replace(/ \[ref=(\w+)\]/g, ' [@$1]')}`).join('\n')
}

/** Flat, since what it stood in is gone; a link keeps where it leads. */
function interactive(lines: readonly Line[]): Line[] {
  return lines.flatMap(({ indent, text }, at) => {
    if (!INTERACTIVE.test(text) && !text.includes('[cursor=pointer]')) return []
    const next = lines[at + 1]
    const url = next && next.indent > indent && URL_LINE.test(next.text) ? ` ${next.text.replace(URL_LINE, '-> ')}` : ''
    return [{ indent: 0, text: text.replace(/:$/, '') + url }]
  })
}

/** What a holder holds moves to its place. */
function withoutHolders(lines: readonly Line[]): Line[] {
  const holders: number[] = []
  return lines.flatMap(({ indent, text }) => {
    while (holders.length > 0 && (holders.at(-1) ?? 0) >= indent) holders.pop()
    const depth = holders.length
    if (!HOLDER.test(text)) return [{ indent: indent - 2 * depth, text }]
    holders.push(indent)
    return []
  })
}
