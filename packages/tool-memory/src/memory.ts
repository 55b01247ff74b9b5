/** What the three tools share: the store they work on and the bounds of an entry. */
import { AppError, type Host, type MemoryStore } from '@sluice/sdk'
import * as v from 'valibot'

const KEY_CHARS_MAX = 200
export const CONTENT_CHARS_MAX = 8000
const CATEGORY_CHARS_MAX = 64

export type MemoryHost = Pick<Host, 'service' | 'clock'>

/** Throws `unavailable` where nobody offers a memory. */
export function memoryOf(host: MemoryHost): MemoryStore {
  const memory = host.service('memory')
  if (!memory) throw new AppError('unavailable', 'This daemon keeps no memory.')
  return memory
}

/** One line without space at its ends. */
const name = (charsMax: number) =>
  v.pipe(v.string(), v.regex(/^\S(?:.*\S)?$/, 'has to be one line without space at its ends'), v.maxLength(charsMax))

export const keyInput = v.pipe(name(KEY_CHARS_MAX), v.description('Short name of the memory, such as user_timezone'))

export const categoryInput = v.pipe(
  name(CATEGORY_CHARS_MAX),
  v.description('core for lasting facts, daily for notes of a day, or a word of your own'),
)
