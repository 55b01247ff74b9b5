/** Tables. On a narrow screen each row becomes a card, in which the cells have the names of their columns. */
import { type ComponentChildren, isValidElement } from 'preact'
import { Line } from './text.tsx'

export interface Column<Row> {
  readonly name: string
  /** What a cell shows. */
  readonly show: (row: Row) => ComponentChildren
  readonly number?: boolean
  /** Marks the column that names the row. */
  readonly heads?: boolean
  /** The name is for screen readers alone, such as that of a column of buttons. */
  readonly quietName?: boolean
}

interface TableProps<Row> {
  /** What the rows are, for screen readers. */
  readonly label: string
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string | number
  readonly empty: ComponentChildren
}

/** The width that the cells with lines share; the other columns are as wide as their texts. */
const LINES_PERCENT = 90
/** The number of rows that tell which columns have lines. */
const ROWS_LOOKED_AT = 20

/** Whether a cell is a line, or a link around one. */
function isLine(shown: ComponentChildren): boolean {
  if (!isValidElement(shown)) return false
  const { children } = shown.props as { readonly children?: ComponentChildren }
  return shown.type === Line || (isValidElement(children) && children.type === Line)
}

export function Table<Row>({ label, rows, columns, keyOf, empty }: TableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>
  const lined = columns.map(({ show }) => rows.slice(0, ROWS_LOOKED_AT).some((row) => isLine(show(row))))
  const share = `${LINES_PERCENT / lined.filter(Boolean).length}%`
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard.
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table class="cards" aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ name, number, quietName }, at) => (
              <th
                key={name}
                scope="col"
                class={number ? 'number' : quietName ? 'actions' : undefined}
                style={lined[at] ? { width: share } : undefined}
              >
                {quietName ? <span class="hidden-text">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, show, number, heads, quietName }, at) => {
                const props = {
                  class: number ? 'number' : quietName ? 'actions' : lined[at] ? 'lined' : undefined,
                  ...(quietName ? {} : { 'data-label': name }),
                }
                return heads ? (
                  <th key={name} scope="row" {...props}>
                    {show(row)}
                  </th>
                ) : (
                  <td key={name} {...props}>
                    {show(row)}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
