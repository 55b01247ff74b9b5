/** The tools `memory_store`, `memory_recall` and `memory_forget`; see `docs/contract.md#memory`. */
import {
  AppError,
  defineTool,
  type Host,
  isAtLeast,
  type Memories,
  type MemoryEntry,
  memoryOwner,
  SHARED_MEMORIES,
  sharedRoom,
  type Tool,
  type ToolContext,
  UNOWNED_MEMORIES,
  whole,
} from '@sluice/sdk'
import * as v from 'valibot'
import type { MemoryConfig } from './config.ts'
import { findMemories } from './find-memories.ts'

const KEY_CHARS_MAX = 200
const CONTENT_CHARS_MAX = 8000
const CATEGORY_CHARS_MAX = 64
const QUERY_CHARS_MAX = 1000
const ENTRIES_MAX = 20

const oneLine = (charsMax: number) =>
  v.pipe(v.string(), v.regex(/^\S(?:.*\S)?$/, 'must be one line without spaces at its ends'), v.maxLength(charsMax))

const keyInput = v.pipe(oneLine(KEY_CHARS_MAX), v.description('Short name of the memory, such as user_timezone'))

const categoryInput = v.pipe(
  oneLine(CATEGORY_CHARS_MAX),
  v.description('core for lasting facts, daily for notes of a day, or your own word'),
)

/** `memory_store`: keeps a text under a key. */
export const memoryStore = (host: Host, config: MemoryConfig): Tool =>
  defineTool({
    name: 'memory_store',
    description: 'Remembers a text under a key, across sessions. Replaces the text that the key had before.',
    risk: 'write',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      key: keyInput,
      content: v.pipe(v.string(), v.regex(/\S/, 'is empty'), v.maxLength(CONTENT_CHARS_MAX), v.description('The text to remember')),
      category: v.optional(categoryInput, 'core'),
    }),
    async run({ key, content, category }, context) {
      const owner = ownerOf(config, context)
      await memoriesOf(host).put({ owner, key, content, category, untrusted: isUntrusted(context), atMs: host.clock.nowMs() })
      return `Remembered ${key} (${category}).`
    },
  })

/** `memory_recall`: finds memories by words. */
export const memoryRecall = (host: Host, config: MemoryConfig): Tool =>
  defineTool({
    name: 'memory_recall',
    description: 'Finds memories by words, best match first. Without a query, returns the newest memories.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      query: v.optional(v.pipe(v.string(), v.maxLength(QUERY_CHARS_MAX), v.description('Words to look for')), ''),
      limit: v.optional(v.pipe(whole(1, ENTRIES_MAX), v.description('The largest number of memories to return')), 5),
    }),
    async run({ query, limit }, context) {
      const { report } = context
      const own = memoryOwner(context) ?? ownerOf(config, context)
      // Others read the answer in a room: only what all clients share may be in it, unless the room itself has the memories.
      const reader = context.isInRoom && !sharedRoom(context.session) ? SHARED_MEMORIES : own
      const memories = memoriesOf(host)
      const isSearch = query.trim() !== ''
      const found = isSearch ? await findMemories(memories, reader, query, limit) : []
      const entries = found.length > 0 ? found : await memories.search(reader, query, limit)
      if (entries.length === 0) return isSearch ? `No memory matches "${query}".` : 'Nothing is remembered yet.'
      if (entries.some(({ owner, untrusted }) => untrusted || owner !== own)) report?.({ untrusted: 'memory_recall' })
      return entries.map(entryText).join('\n\n')
    },
  })

/** `memory_forget`: removes one memory. */
export const memoryForget = (host: Host, config: MemoryConfig): Tool =>
  defineTool({
    name: 'memory_forget',
    description: 'Forgets the text remembered under a key.',
    risk: 'write',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({ key: keyInput }),
    async run({ key }, context) {
      const memories = memoriesOf(host)
      if (await memories.delete(ownerOf(config, context), key)) return `Forgot ${key}.`
      const others = await Promise.all([SHARED_MEMORIES, UNOWNED_MEMORIES].map((owner) => memories.get(owner, key)))
      if (others.some((entry) => entry)) return `${key} is shared by all clients and was kept: only the operator can remove it.`
      return `Nothing was remembered under ${key}.`
    },
  })

/** Throws `unavailable` when the host has no memory store. */
function memoriesOf(host: Host): Memories {
  const memories = host.service('memory')
  if (!memories) throw new AppError('unavailable', 'This daemon keeps no memories.')
  return memories
}

/** Returns the owner of the entries that a call stores and forgets. Throws `unavailable` for a call without a known caller. */
function ownerOf({ shared }: MemoryConfig, context: ToolContext): string {
  if (shared) return SHARED_MEMORIES
  const owner = memoryOwner(context)
  if (owner === undefined) throw new AppError('unavailable', 'This call has no known caller, so it has no memories.')
  return owner
}

/**
 * Tells whether text of others may lead to the stored memory: the model has read such text, or a stranger wrote the message. In a room, people of
 * every standing read it.
 */
const isUntrusted = ({ hasReadUntrusted, standing, session }: ToolContext): boolean =>
  hasReadUntrusted?.() !== false || !isAtLeast(standing, sharedRoom(session) ? 'operator' : 'listed')

const entryText = ({ key, category, content, updatedAtMs }: MemoryEntry): string =>
  `${key} (${category}, ${new Date(updatedAtMs).toISOString().slice(0, 10)}):\n${content}`
