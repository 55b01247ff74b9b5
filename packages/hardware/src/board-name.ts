/** Names a board may have in the configuration. */
import { BOARDS } from './boards.ts'

/** This machine itself, as a board of the transport `native`. */
export const THIS_MACHINE = 'sbc'

export const BOARD_NAMES: readonly string[] = [...BOARDS.map(({ name }) => name), THIS_MACHINE]
/** Further off, a name is no misspelling. */
const DISTANCE_MAX = 4
const NAME_CHARS_MAX = 64

/** What is wrong with a name that is none of them, with the one that was probably meant. */
export function unknownBoard(name: string): string {
  const wrong = name.slice(0, NAME_CHARS_MAX)
  const [nearest] = BOARD_NAMES.map((known) => ({ known, distance: distanceOf(wrong, known) })).sort((a, b) => a.distance - b.distance)
  const meant = nearest && nearest.distance <= DISTANCE_MAX ? `did you mean ${nearest.known}? ` : ''
  return `no board is called ${JSON.stringify(wrong)}; ${meant}Known are ${BOARD_NAMES.join(', ')}`
}

/** Letters to insert, delete or replace to get from one to the other. */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
