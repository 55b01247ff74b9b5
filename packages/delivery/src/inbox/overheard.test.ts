/** The messages that a room overhears: bounded in number and age, each once, also when several processes write. */
import type { Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, it } from 'vitest'
import { Overheard, overheardLine } from './overheard.ts'

const HOUR_MS = 3_600_000
const SESSION = 'channel:x/bot/room/'

function setUp() {
  const time = { nowMs: 100 * HOUR_MS }
  const { keyValue } = testHost()
  const made = () => new Overheard({ store: { keyValue: () => keyValue }, clock: { nowMs: () => time.nowMs } })
  return { time, keyValue, made, overheard: made() }
}

const line = (id: string, atMs: number, more: Partial<Inbound> = {}) =>
  overheardLine({ id, account: 'bot', sender: 'bob', to: { to: 'room' }, text: `text of ${id}`, ...more }, 'listed', atMs)

it('keeps the newest 50 lines, each id once', async () => {
  const { overheard, time } = setUp()
  for (let number = 0; number < 60; number++) await overheard.add(SESSION, line(`n${number}`, time.nowMs))
  await overheard.add(SESSION, line('n59', time.nowMs, { text: 'again' }))
  const ids = (await overheard.before(SESSION, time.nowMs)).map(({ id }) => id)
  expect([ids.length, ids[0], ids.at(-1)]).toEqual([50, 'n10', 'n59'])
})

it('loses no line that several processes write at the same time', async () => {
  const { made, time, overheard } = setUp()
  await Promise.all(Array.from({ length: 12 }, (_, index) => made().add(SESSION, line(`n${index}`, time.nowMs))))
  expect(await overheard.before(SESSION, time.nowMs)).toHaveLength(12)
})

it('neither shows nor keeps a line for longer than a day, also after the clock was set back', async () => {
  const { overheard, time, keyValue } = setUp()
  await overheard.add(SESSION, line('old', time.nowMs))
  time.nowMs += 23 * HOUR_MS
  await overheard.add(SESSION, line('new', time.nowMs))
  await overheard.sweep()
  expect((await overheard.before(SESSION, time.nowMs)).map(({ id }) => id)).toEqual(['old', 'new'])
  time.nowMs += 2 * HOUR_MS
  expect((await overheard.before(SESSION, time.nowMs)).map(({ id }) => id)).toEqual(['new'])
  await overheard.sweep()
  expect(await keyValue.list('', 9)).toMatchObject([{ value: [{ id: 'new' }] }])
  time.nowMs -= 80 * HOUR_MS
  await overheard.sweep()
  expect(await keyValue.list('', 9)).toEqual([])
})

it('shows the lines up to a time, drops those that were shown, and keeps the others', async () => {
  const { overheard, time } = setUp()
  await overheard.add(SESSION, line('1', time.nowMs))
  await overheard.add(SESSION, line('2', time.nowMs + 5))
  const shown = await overheard.before(SESSION, time.nowMs)
  await overheard.drop(SESSION, shown)
  expect((await overheard.before(SESSION, time.nowMs + 5)).map(({ id }) => id)).toEqual(['2'])
})

it('cuts a long text and names files', () => {
  const { text } = line('1', 0, { text: 'x'.repeat(5000) })
  expect([text.length, text.at(-1)]).toEqual([2001, '…'])
  expect(line('2', 0, { text: '', attachments: [{ kind: 'file', name: 'a.pdf', source: { id: 'f' } }] }).text).toBe('[a.pdf]')
})
