/** The time that a search keeps the event loop. */
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { searchPage } from './search-page.ts'

const ROWS = 40
const ROW_MS = 5

/** Works for a while without giving up the event loop, as a read from a slow disk does. */
function work(): void {
  for (const end = performance.now() + ROW_MS; performance.now() < end; );
}

test('other work gets its turn every few rows, however long each takes to look at', async () => {
  let turns = 0
  let isOver = false
  const other = (async () => {
    for (; !isOver; turns++) await setImmediate()
  })()
  const { page, next } = await searchPage({
    limit: ROWS,
    lookedAtMax: 1000,
    list: async () => Array.from({ length: ROWS }, (_, index) => ({ number: ROWS - index })),
    placeOf: ({ number }) => number,
    async isFound({ number }) {
      work()
      return number % 2 === 0
    },
  })
  isOver = true
  await other
  expect(page).toHaveLength(ROWS / 2)
  expect(next).toBeNull()
  expect(turns).toBeGreaterThan((ROWS * ROW_MS) / 20)
})
