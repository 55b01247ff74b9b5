/** `memory_recall`: finds what was remembered, by words. */
import { defineTool, type MemoryEntry, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { MemoryConfig } from './config.ts'
import { type MemoryHost, memoryOf, ownerOf } from './memory.ts'

const QUERY_CHARS_MAX = 1000
const ENTRIES_MAX = 20

export const memoryRecall = (host: MemoryHost, config: MemoryConfig): Tool =>
  defineTool({
    name: 'memory_recall',
    description: 'Finds what was remembered, best match first. Without a query, the newest memories.',
    risk: 'read',
    input: v.object({
      query: v.optional(v.pipe(v.string(), v.maxLength(QUERY_CHARS_MAX), v.description('Words to look for')), ''),
      limit: v.optional(v.pipe(whole(1, ENTRIES_MAX), v.description('How many to return at most')), 5),
    }),
    async run({ query, limit }, context) {
      const reader = context.caller ?? ownerOf(config, context)
      const entries = await memoryOf(host).search(reader, query, limit)
      if (entries.length === 0) return query.trim() === '' ? 'Nothing is remembered yet.' : `Nothing remembered matches "${query}".`
      return entries.map(entryText).join('\n\n')
    },
  })

const entryText = ({ key, category, content, updatedAtMs }: MemoryEntry): string =>
  `${key} (${category}, ${new Date(updatedAtMs).toISOString().slice(0, 10)}):\n${content}`
