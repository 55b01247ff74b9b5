// The declarations of the channels, from `src/abilities.ts` of its package, as cells of tables.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CATALOGUE } from '../packages/sdk/src/index.ts'

const PACKAGES = join(import.meta.dirname, '../packages')
const load = async (id) => [id, (await import(pathToFileURL(join(PACKAGES, id, 'src/abilities.ts')))).ABILITIES]
const ids = Object.keys(CATALOGUE).filter((id) => existsSync(join(PACKAGES, id, 'src/abilities.ts')))
const found = new Map(await Promise.all(ids.map(load)))

export const abilitiesOf = (id) => found.get(id)

/** The words for the values that are not words for people. */
const WORDS = {
  contact: 'contacts',
  location: 'locations',
  sticker: 'stickers',
  poll: 'polls',
  checklist: 'checklists',
  link: 'previews of links',
  form: 'forms',
  payment: 'payments',
  call: 'calls',
  game: 'games',
  story: 'stories',
  event: 'events',
  unknown: 'a line for any other kind',
}
const ACTS = { edits: 'edits of its messages', typing: 'a sign that it writes', reactions: 'reactions', commands: 'a menu of commands' }
const NAMES = { payload: 'with each message', lookup: 'looked up once a day', none: 'no' }
const listed = (values, words) => values.map((value) => words[value] ?? value).join(', ') || 'nothing'

/** Returns the name of the platform, the kinds that arrive, whether names of writers arrive, the kinds that can be sent, and the kept state. */
export const abilityCells = ({ platform, arrives, names, sends, keeps }) => [
  platform,
  listed(arrives, WORDS),
  NAMES[names],
  listed(sends, ACTS),
  keeps,
]
