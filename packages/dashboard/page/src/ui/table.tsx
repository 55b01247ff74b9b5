/** Tables. On a narrow screen each row becomes a card, in which the cells have the names of their columns. */
import type { ComponentChildren } from 'preact'

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

export function Table<Row>({ label, rows, columns, keyOf, empty }: TableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard.
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table class="cards" aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ name, number, quietName }) => (
              <th key={name} scope="col" class={number ? 'number' : quietName ? 'actions' : undefined}>
                {quietName ? <span class="hidden-text">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, show, number, heads, quietName }) => {
                const props = { class: number ? 'number' : quietName ? 'actions' : undefined, ...(quietName ? {} : { 'data-label': name }) }
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
