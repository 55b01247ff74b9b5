/** What the three tools share: the store they work on, whose entries they touch and the bounds of an entry. */
import { AppError, type Host, type Memories, SHARED_MEMORIES, type ToolContext } from '@sluice/sdk'
import * as v from 'valibot'
import type { MemoryConfig } from './config.ts'

const KEY_CHARS_MAX = 200
export const CONTENT_CHARS_MAX = 8000
const CATEGORY_CHARS_MAX = 64

export type MemoryHost = Pick<Host, 'service' | 'clock'>

/** Throws `unavailable` where the host offers no memory. */
export function memoryOf(host: MemoryHost): Memories {
  const memory = host.service('memory')
  if (!memory) throw new AppError('unavailable', 'This daemon keeps no memory.')
  return memory
}

/** Whose entries a call stores and forgets. Throws `unavailable` for a call whose caller is not known. */
export function ownerOf({ shared }: MemoryConfig, { caller }: ToolContext): string {
  if (shared) return SHARED_MEMORIES
  if (caller === undefined) throw new AppError('unavailable', 'This call has no known caller, so it has no memory.')
  return caller
}

/** One line without space at its ends. */
const name = (charsMax: number) =>
  v.pipe(v.string(), v.regex(/^\S(?:.*\S)?$/, 'has to be one line without space at its ends'), v.maxLength(charsMax))

export const keyInput = v.pipe(name(KEY_CHARS_MAX), v.description('Short name of the memory, such as user_timezone'))

export const categoryInput = v.pipe(
  name(CATEGORY_CHARS_MAX),
  v.description('core for lasting facts, daily for notes of a day, or a word of your own'),
)
