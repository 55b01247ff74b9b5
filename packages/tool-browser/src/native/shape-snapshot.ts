/** Shortens the library's snapshot of a page to the elements of interest, one line each, with the @refs that name them. */

/** Matches elements with roles that a user can interact with. */
const INTERACTIVE =
  /^- '?(?:button|checkbox|combobox|link|listbox|menuitem|menuitemcheckbox|menuitemradio|option|radio|searchbox|slider|spinbutton|switch|tab|textbox|treeitem|iframe)\b/
/** Matches elements that only contain others: they have no name, text or role. */
const CONTAINER = /^- '?generic(?: \[(?:ref=[^\]]*|active)\])*'?:$/
const URL_LINE = /^- \/url: /

/** The parameters of the action `snapshot` that apply here. */
export interface SnapshotShape {
  readonly interactive_only: boolean
  readonly compact: boolean
}

interface Line {
  readonly indent: number
  readonly text: string
}

/** Returns the shaped snapshot; `compact` only matters when `interactive_only` is false. */
export function shapeSnapshot(snapshot: string, { interactive_only, compact }: SnapshotShape): string {
  const lines = snapshot.split('\n').map((line) => ({ indent: line.search(/\S|$/), text: line.trim() }))
  const shaped = interactive_only ? interactive(lines) : compact ? withoutContainers(lines) : lines
  return shaped.map(({ indent, text }) => `${' '.repeat(indent)}${text.replace(/ \[ref=(\w+)\]/g, ' [@$1]')}`).join('\n')
}

/** Returns the interactive elements without indentation, because their parents are left out. A link gets its target. */
function interactive(lines: readonly Line[]): Line[] {
  return lines.flatMap(({ indent, text }, at) => {
    if (!INTERACTIVE.test(text) && !text.includes('[cursor=pointer]')) return []
    const next = lines[at + 1]
    const url = next && next.indent > indent && URL_LINE.test(next.text) ? ` ${next.text.replace(URL_LINE, '-> ')}` : ''
    return [{ indent: 0, text: text.replace(/:$/, '') + url }]
  })
}

/** Leaves containers out and moves their children up to their indentation. */
function withoutContainers(lines: readonly Line[]): Line[] {
  /** The indentations of the containers around the current line. */
  const containers: number[] = []
  return lines.flatMap(({ indent, text }) => {
    while (containers.length > 0 && (containers.at(-1) ?? 0) >= indent) containers.pop()
    const depth = containers.length
    if (!CONTAINER.test(text)) return [{ indent: indent - 2 * depth, text }]
    containers.push(indent)
    return []
  })
}
